#include "meta/trace/text_words.h"

#include <charconv>

#include "core/error.h"

namespace metaprof {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

int hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Reads what follows a backslash at `text[i]`; leaves `i` at its last character.
char unescape(const TextLine& line, std::string_view text, size_t& i) {
  if (i < text.size()) {
    switch (text[i]) {
      case '"': return '"';
      case '\\': return '\\';
      case 'n': return '\n';
      case 't': return '\t';
      case 'r': return '\r';
      case 'x':
        if (i + 2 < text.size() && hexadecimal(text[i + 1]) >= 0 && hexadecimal(text[i + 2]) >= 0) {
          i += 2;
          return static_cast<char>(hexadecimal(text[i - 1]) * 16 + hexadecimal(text[i]));
        }
        break;
    }
  }
  line.wrong("a backslash in quotes must be followed by one of \" \\ n t r xHH");
}

}  // namespace

void TextLine::split(std::string_view text) {
  words.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_blank(text[i])) continue;
    if (text.substr(i).starts_with("//")) return;
    std::string& word = words.emplace_back();
    bool quoted = false;
    for (; i < text.size() && (quoted || !is_blank(text[i])); ++i) {
      if (text[i] == '"')
        quoted = !quoted;
      else if (quoted && text[i] == '\\')
        word += unescape(*this, text, ++i);
      else
        word += text[i];
    }
    if (quoted) wrong("a quotation mark is not closed");
  }
}

void TextLine::expected(std::string_view what, size_t at) const {
  constexpr size_t kShown = 60;
  if (at < words.size()) {
    const std::string_view got = words[at];
    fail("{}:{}: expected {}, got '{}{}'", origin, number, what, got.substr(0, kShown),
         got.size() > kShown ? "…" : "");
  }
  fail("{}:{}: expected {}, got the end of the line", origin, number, what);
}

void TextLine::wrong(std::string_view what) const { fail("{}:{}: {}", origin, number, what); }

const std::string& TextLine::word(size_t at, std::string_view what) const {
  if (at >= words.size()) expected(what, at);
  return words[at];
}

int64_t TextLine::integer(size_t at, std::string_view what, int64_t least) const {
  return integer_in(word(at, what), at, what, least);
}

int64_t TextLine::integer_in(std::string_view digits, size_t at, std::string_view what, int64_t least) const {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < least) expected(what, at);
  return value;
}

uint64_t TextLine::unsigned_in(std::string_view digits, size_t at, std::string_view what) const {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) expected(what, at);
  return value;
}

void TextLine::end(size_t at) const {
  if (at < words.size()) expected("the end of the line", at);
}

}  // namespace metaprof
