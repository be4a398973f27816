#pragma once
// The one door for text from outside (files, programs, the command line) to whatever people look at.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace metaprof {

inline constexpr size_t kAnyLength = SIZE_MAX;
/// What a word, and a whole message, may take of a line.
inline constexpr size_t kMostCharactersOfWord = 200, kMostCharactersOfMessage = 480;

/// Text as one line of plain characters: what moves a terminal's cursor (C0, C1), turns the direction of writing or ends
/// a line, and bytes that are not UTF-8 become \n, \t, \xHH or \uHHHH. What exceeds `most` characters is cut in the
/// middle with "…".
std::string shown(std::string_view text, size_t most = kAnyLength);

/// A message as one line of at most kMostCharactersOfMessage characters, with each word cut by itself first, so that a
/// long one leaves what is said of it.
std::string shown_message(std::string_view text);

/// A report of many lines: as `shown`, but line feeds stay, and colours (ESC [ … m).
std::string shown_lines(std::string_view text);

/// The same characters in a text of JSON, where they can stand in strings only, as \uHHHH: the strings stay what they
/// are. Bytes that are not UTF-8 become U+FFFD.
std::string shown_json(std::string text);

/// Characters of UTF-8 text.
size_t width_of(std::string_view text);

}  // namespace metaprof
