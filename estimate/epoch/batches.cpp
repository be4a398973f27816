#include "estimate/epoch/batches.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <random>

#include "core/error.h"
#include "core/shown_text.h"
#include "estimate/prepare/model.h"

namespace metaprof {
namespace {

constexpr size_t kMostSamples = 10'000'000;
constexpr int64_t kLongest = int64_t{1} << 24;  // tokens of one sample

// A list as people have it: of lines, with commas, or as Python prints it.
constexpr std::string_view kBetween = " \t\r\n,[]";

bool is_inline(const std::string& text) {
  return text.find_first_not_of("0123456789:x ,[]") == std::string::npos;
}

// Where an entry is in the text.
struct Word {
  std::string_view text;
  int line = 1;
};

[[noreturn]] void refuse(const Word& word) {
  fail(
      "--lengths: line {}: '{}' is no length (812), no length and how often it comes (512:4000), and no "
      "batch "
      "(8x512)",
      word.line, shown(word.text, 40));
}

int64_t whole(const Word& word, std::string_view text, int64_t most) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size() || number < 1 || number > most) refuse(word);
  return number;
}

class Reading {
 public:
  Lengths read(std::string_view text) {
    int line = 1;
    while (!text.empty()) {
      const char first = text.front();
      if (first == '#') {
        text.remove_prefix(std::min(text.find('\n'), text.size()));
      } else if (kBetween.find(first) != std::string_view::npos) {
        line += first == '\n';
        text.remove_prefix(1);
      } else {
        const size_t end = std::min(text.find_first_of(kBetween), text.size());
        take({text.substr(0, end), line});
        text.remove_prefix(end);
      }
    }
    if (lengths_.samples.empty() && lengths_.batches.empty())
      fail("--lengths: there is no length in it; write the tokens of each sample, one a line");
    // A histogram has no order. One that is drawn is the same each time: the generator's numbers are the standard's.
    if (kind_ == ':') shuffle();
    return std::move(lengths_);
  }

 private:
  void take(const Word& word) {
    const size_t sign = word.text.find_first_of(":x");
    const char kind = sign == std::string_view::npos ? ' ' : word.text[sign];
    if (kind_ == 0) kind_ = kind;
    if (kind != kind_)
      fail("--lengths: line {}: '{}': lengths, counts of lengths and batches cannot stand in one list",
           word.line, shown(word.text, 40));
    if (kind == ' ') return add(whole(word, word.text, kLongest), 1);
    const std::string_view before = word.text.substr(0, sign), behind = word.text.substr(sign + 1);
    if (kind == ':') return add(whole(word, before, kLongest), whole(word, behind, kMostSamples));
    if (lengths_.batches.size() == kMostSamples) too_many();
    lengths_.batches.push_back({whole(word, before, kLongest), whole(word, behind, kLongest)});
  }

  void add(int64_t tokens, int64_t times) {
    if (lengths_.samples.size() + static_cast<size_t>(times) > kMostSamples) too_many();
    lengths_.samples.insert(lengths_.samples.end(), static_cast<size_t>(times), tokens);
  }

  [[noreturn]] static void too_many() {
    fail("--lengths: there are more than {} samples; a part of the epoch says the same", kMostSamples);
  }

  void shuffle() {
    std::mt19937_64 random(0);
    std::vector<int64_t>& samples = lengths_.samples;
    for (size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random() % i]);
  }

  Lengths lengths_;
  char kind_ = 0;  // ' ', ':' or 'x'
};

// Sorts each run of `size` samples, the longest first, and mixes nothing else.
std::vector<int64_t> in_buckets(std::vector<int64_t> samples, size_t size) {
  for (size_t begin = 0; begin < samples.size(); begin += size) {
    const size_t end = std::min(begin + size, samples.size());
    std::sort(samples.begin() + static_cast<ptrdiff_t>(begin), samples.begin() + static_cast<ptrdiff_t>(end),
              std::greater<>());
  }
  return samples;
}

std::vector<BatchShape> of_tokens(const std::vector<int64_t>& samples, int64_t most) {
  std::vector<BatchShape> batches;
  BatchShape now;
  for (const int64_t tokens : samples) {
    if (tokens > most) fail("--max-tokens: a sample has {} tokens, more than {}", tokens, most);
    const BatchShape grown{now.samples + 1, std::max(now.tokens, tokens)};
    if (now.samples > 0 && grown.padded() > most) {
      batches.push_back(now);
      now = {1, tokens};
    } else {
      now = grown;
    }
  }
  if (now.samples > 0) batches.push_back(now);
  return batches;
}

std::vector<BatchShape> of_samples(const std::vector<int64_t>& samples, size_t count) {
  std::vector<BatchShape> batches;
  for (size_t begin = 0; begin < samples.size(); begin += count) {
    const size_t end = std::min(begin + count, samples.size());
    const auto longest = std::max_element(samples.begin() + static_cast<ptrdiff_t>(begin),
                                          samples.begin() + static_cast<ptrdiff_t>(end));
    batches.push_back({static_cast<int64_t>(end - begin), *longest});
  }
  return batches;
}

}  // namespace

Lengths read_lengths(const std::string& lengths) {
  std::error_code unreadable;
  if (is_inline(lengths) && !std::filesystem::exists(lengths, unreadable)) return Reading().read(lengths);
  try {
    return Reading().read(read_text_file(lengths));
  } catch (const Error& error) {
    const std::string text = error.what();
    fail("{}{}", text.starts_with("--lengths") ? "" : "--lengths: ", text);
  }
}

std::vector<BatchShape> batches_of(const Lengths& lengths, const EpochOptions& options, int64_t samples) {
  if (!lengths.batches.empty()) {
    for (const auto& [name, given] :
         {std::pair("--bucket", options.bucket), {"--max-tokens", options.max_tokens}})
      if (given > 0) fail("{} makes batches of samples, and --lengths has batches already", name);
    return lengths.batches;
  }
  // Of a token budget a bucket is as many samples as it would be of --batch.
  const auto size = static_cast<size_t>(options.bucket * samples);
  const std::vector<int64_t> ordered = size > 1 ? in_buckets(lengths.samples, size) : lengths.samples;
  return options.max_tokens > 0 ? of_tokens(ordered, options.max_tokens)
                                : of_samples(ordered, static_cast<size_t>(samples));
}

double padding_of(const Lengths& lengths, const std::vector<BatchShape>& batches) {
  int64_t padded = 0;
  for (const BatchShape& batch : batches) padded += batch.padded();
  const auto own = std::accumulate(lengths.samples.begin(), lengths.samples.end(), int64_t{0});
  return padded == 0 || own == 0 ? 0 : 1 - static_cast<double>(own) / static_cast<double>(padded);
}

}  // namespace metaprof
