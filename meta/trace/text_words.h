#pragma once
// One line of a trace's text as words, and the complaints about them. For the parser only.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace metaprof {

struct TextLine {
  std::string_view origin;
  int number = 0;
  std::vector<std::string> words;

  /// Splits `text` at blanks; "…" may be part of a word. Nothing after `//`.
  void split(std::string_view text);

  /// "trace:12: expected …, got '…'". `at`: index of the word that is wrong; beyond the last: the end of the
  /// line.
  [[noreturn]] void expected(std::string_view what, size_t at) const;
  [[noreturn]] void wrong(std::string_view what) const;

  /// The word at `at`, an error that names `what` if there is none.
  const std::string& word(size_t at, std::string_view what) const;
  /// An integer from `least` on; an error that names `what` otherwise.
  int64_t integer(size_t at, std::string_view what, int64_t least = 0) const;
  /// As above, of a part of the word at `at`.
  int64_t integer_in(std::string_view digits, size_t at, std::string_view what, int64_t least = 0) const;
  /// Any 64 bits.
  uint64_t unsigned_in(std::string_view digits, size_t at, std::string_view what) const;
  /// An error if there are words from `at` on.
  void end(size_t at) const;
};

}  // namespace metaprof
