#include "core/shown_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/utf8.h"

namespace metaprof {
namespace {

bool is_plain(char c) { return c >= ' ' && c < 0x7f; }

// C0, DEL and C1; marks that turn the direction of writing (Unicode's Bidi_Control) and separators of lines; what is no
// character, which XML refuses.
bool is_control(uint32_t character) {
  return character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x61c ||
         character == 0x200e || character == 0x200f || (character >= 0x2028 && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069) || character == 0xfffe || character == 0xffff;
}

// Appends the first character of `text`, or what stands for it; gives its bytes.
size_t append_first(std::string& line, std::string_view text) {
  const size_t length = utf8_length(text);
  const uint32_t character = length == 0 ? 0 : utf8_character(text);
  if (text[0] == '\n')
    line += "\\n";
  else if (text[0] == '\t')
    line += "\\t";
  else if (length <= 1 && (length == 0 || is_control(character)))
    line += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
  else if (is_control(character))
    line += fmt::format("\\u{:04x}", character);
  else
    line += text.substr(0, length);
  return std::max<size_t>(length, 1);
}

// The byte at which the character of this number begins.
size_t begin_of(std::string_view text, size_t number) {
  size_t at = 0;
  for (; number > 0 && at < text.size(); --number) at += std::max<size_t>(utf8_length(text.substr(at)), 1);
  return at;
}

// Bytes of the colour that begins here (ECMA-48, SGR); 0: none does.
size_t length_of_colour(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const size_t end = text.find_first_not_of("0123456789;", 2);
  return end != text.npos && text[end] == 'm' ? end + 1 : 0;
}

// Of clean text.
std::string cut(std::string text, size_t most) {
  const size_t width = width_of(text);
  if (width <= most) return text;
  const size_t head = (most - 1) / 2, tail = most - 1 - head;
  return text.substr(0, begin_of(text, head)) + "…" + text.substr(begin_of(text, width - tail));
}

}  // namespace

std::string shown(std::string_view text, size_t most) {
  if (text.size() <= most && std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string line;
  line.reserve(text.size());
  for (size_t i = 0; i < text.size();) i += append_first(line, text.substr(i));
  return cut(std::move(line), most);
}

std::string shown_message(std::string_view text) {
  std::string message;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    message += shown(text.substr(begin, end - begin), kMostCharactersOfWord);
    begin = text.find_first_not_of(' ', end);
    begin = std::min(begin, text.size());
    message.append(text.substr(end, begin - end));
  }
  return cut(std::move(message), kMostCharactersOfMessage);
}

std::string shown_lines(std::string_view text) {
  std::string lines;
  lines.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t colour = length_of_colour(text.substr(i));
    if (colour > 0 || text[i] == '\n' || is_plain(text[i])) {
      lines.append(text, i, std::max<size_t>(colour, 1));
      i += std::max<size_t>(colour, 1);
    } else {
      i += append_first(lines, text.substr(i));
    }
  }
  return lines;
}

std::string shown_json(std::string text) {
  const auto is_fine = [](char c) { return is_plain(c) || c == '\n'; };
  if (std::ranges::all_of(text, is_fine)) return text;
  std::string out;
  out.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const size_t length = utf8_length(rest);
    const uint32_t character = length == 0 ? 0xfffd : utf8_character(rest);
    if (length == 0 || (is_control(character) && character != '\n'))
      out += fmt::format("\\u{:04x}", character);
    else
      out += rest.substr(0, length);
    rest.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

size_t width_of(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace metaprof
