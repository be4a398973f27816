#pragma once
// A place in a short text, which moves on as parts are read: for lines of logs, settings, names with marks.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace metaprof {

/// The whole text as a number; nothing if it is none or out of range.
template <class Integer = int64_t>
std::optional<Integer> whole_number(std::string_view text, int base = 10) {
  Integer number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Without blanks at either end.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : rest_(text) {}

  /// What has not been read.
  std::string_view rest() const { return rest_; }
  bool at_end() const { return rest_.empty(); }

  /// Takes the prefix, if the rest begins with it.
  bool accept(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }
  /// Takes what stands before the first of these characters, or all; the character itself stays.
  std::string_view until(std::string_view characters) {
    return taken(std::min(rest_.find_first_of(characters), rest_.size()));
  }
  /// Takes what stands before the separator, and the separator.
  std::string_view part(char separator) {
    const std::string_view part = taken(std::min(rest_.find(separator), rest_.size()));
    if (!rest_.empty()) rest_.remove_prefix(1);
    return part;
  }
  /// Takes the digits of a number; nothing if there are none, or too many.
  template <class Integer = int64_t>
  std::optional<Integer> number(int base = 10) {
    Integer number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number, base);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return number;
  }

 private:
  std::string_view taken(size_t count) {
    const std::string_view part = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return part;
  }

  std::string_view rest_;
};

}  // namespace metaprof
