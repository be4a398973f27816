#pragma once
// A value of an option as reports, JSON files and the command line carry it, and which values an option takes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace metaprof {

/// monostate: not given.
using OptionValue = std::variant<std::monostate, bool, int64_t, double, std::string>;

/// As people write it: "yes" and "no", numbers, the text itself; empty: not given.
std::string to_text(const OptionValue& value);

/// What an option takes.
struct OptionRule {
  enum class Kind : uint8_t { flag, whole, real, word, text };
  Kind kind = Kind::text;
  int64_t least = 0, most = 0;          ///< of a whole number
  std::vector<std::string> words = {};  ///< of a word
  /// Of a word: whether it is taken though it is not listed, and which are, for messages.
  bool (*takes)(std::string_view word) = nullptr;
  std::string_view besides = {};

  /// "1 to 1000", "true or false", "one of: fp32, bf16".
  std::string expected() const;
  /// The value that somebody typed. PyTorch's words are taken for ours ("bfloat16", "AdamW", "for_loop").
  /// Nothing: it is not as `expected` says.
  std::optional<OptionValue> read(std::string_view text) const;
  /// Whether a value, as a JSON file has it, is as `expected` says.
  bool allows(const OptionValue& value) const;
};

/// The one of `known` that `word` was probably meant to be; empty: none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);
/// "; did you mean 'profile'?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace metaprof
