#include "core/option_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace metaprof {
namespace {

// What PyTorch and its users call our words.
constexpr std::pair<std::string_view, std::string_view> kOtherWords[] = {
    {"float32", "fp32"},         {"float", "fp32"},       {"f32", "fp32"},      {"bfloat16", "bf16"},
    {"float16", "fp16"},         {"half", "fp16"},        {"f16", "fp16"},      {"amp-bfloat16", "amp-bf16"},
    {"amp-float16", "amp-fp16"}, {"forloop", "for-loop"}, {"loop", "for-loop"}, {"adamw8bit", "adamw-8bit"},
};

// Small letters, and '-' for '_'.
std::string plain(std::string_view word) {
  std::string text(word);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_' || c == ' ') c = '-';
  }
  return text;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Letters to insert, take away or replace (Levenshtein); two neighbours in the wrong order count as one.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + size_t{a[i - 1] != b[j - 1]}});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::string to_text(const OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const int64_t* number = std::get_if<int64_t>(&value)) return fmt::format("{}", *number);
  if (const double* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  return "";
}

std::string OptionRule::expected() const {
  switch (kind) {
    case Kind::flag: return "true or false";
    case Kind::whole: return fmt::format("{} to {}", least, most);
    case Kind::real: return "a number";
    case Kind::word:
      return fmt::format("one of: {}{}{}", fmt::join(words, ", "), besides.empty() ? "" : "; ", besides);
    case Kind::text: break;
  }
  return "a text";
}

bool OptionRule::allows(const OptionValue& value) const {
  switch (kind) {
    case Kind::flag: return std::holds_alternative<bool>(value);
    case Kind::real: return std::holds_alternative<double>(value);
    case Kind::text: return std::holds_alternative<std::string>(value);
    case Kind::whole: {
      const int64_t* number = std::get_if<int64_t>(&value);
      return number && *number >= least && *number <= most;
    }
    case Kind::word: {
      const std::string* word = std::get_if<std::string>(&value);
      return word && (std::ranges::find(words, *word) != words.end() || (takes && takes(*word)));
    }
  }
  return false;
}

std::optional<OptionValue> OptionRule::read(std::string_view text) const {
  OptionValue value;
  const std::string small = plain(text);
  switch (kind) {
    case Kind::flag:
      if (small == "true" || small == "yes" || small == "on" || small == "1") return true;
      if (small == "false" || small == "no" || small == "off" || small == "0") return false;
      return std::nullopt;
    case Kind::whole:
      if (const auto number = number_in<int64_t>(text)) value = *number;
      break;
    case Kind::real:
      if (const auto number = number_in<double>(text)) value = *number;
      break;
    case Kind::word: {
      const auto* other =
          std::ranges::find(kOtherWords, small, &std::pair<std::string_view, std::string_view>::first);
      value = other == std::end(kOtherWords) ? small : std::string(other->second);
      break;
    }
    case Kind::text: value = std::string(text); break;
  }
  return allows(value) ? std::optional(value) : std::nullopt;
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string nearest;
  const std::string typed = plain(word);
  size_t least = std::max<size_t>(1, typed.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::string plain_candidate = plain(candidate);
    size_t letters = distance(typed, plain_candidate);
    // A beginning that only one of them has, as --seq of --sequence, is as good.
    if (typed.size() >= 3 && plain_candidate.starts_with(typed)) letters = std::min<size_t>(letters, 1);
    if (letters < least) least = letters, nearest = candidate;
  }
  return nearest;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace metaprof
