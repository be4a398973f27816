#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace metaprof {

/// Bytes of the character at the beginning of a text that is not empty; 0 if no well-formed one is there
/// (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing beyond U+10FFFF).
size_t utf8_length(std::string_view text);

/// The number of that character, where there is one.
uint32_t utf8_character(std::string_view text);

void append_utf8(std::string& text, uint32_t character);

/// The text with U+FFFD in place of each byte that is part of no character.
std::string well_formed(std::string_view text);

}  // namespace metaprof
