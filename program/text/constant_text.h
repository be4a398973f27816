#pragma once
// Constants, words and quoted strings of a program's text.

#include <array>
#include <string>
#include <string_view>

#include "meta/tensor/value.h"

namespace metaprof {

inline constexpr std::string_view kPlainWordCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./@*+-:";
inline constexpr std::array<bool, 256> kIsOfPlainWord = [] {
  std::array<bool, 256> is{};
  for (const char c : kPlainWordCharacters) is[static_cast<unsigned char>(c)] = true;
  return is;
}();
/// A letter, a digit or one of "_./@*+-:" with which words are made that need no quotes.
inline bool is_of_plain_word(char c) { return kIsOfPlainWord[static_cast<unsigned char>(c)]; }
/// The word itself, or in quotes with escapes where it has other characters, or none.
std::string word_text(std::string_view word);
/// In quotes: \" \\ \n \t \r, and \xHH for other control characters.
std::string quoted_text(std::string_view text);
/// None, True, 4, 0.5, complex(1.0, 2.0), "text", [1, 2], device(cpu), generator. Tensors are no constants.
std::string constant_text(const Value& value);
/// The shortest text that gives the same number; always with a point, an exponent, "inf" or "nan".
std::string real_text(double number);

}  // namespace metaprof
