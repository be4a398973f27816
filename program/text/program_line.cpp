#include "program/text/program_line.h"

#include <fmt/format.h>

#include <charconv>

#include "core/error.h"
#include "core/formats/text_cursor.h"
#include "core/utf8.h"
#include "program/program.h"
#include "program/text/constant_text.h"
#include "program/text/text_words.h"

namespace metaprof {
namespace {

std::optional<double> whole_real(std::string_view word) {
  double number = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), number);
  return code == std::errc() && end == word.data() + word.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

void ProgramLine::skip_blanks() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
}

std::string_view ProgramLine::peek() const {
  size_t end = at_;
  while (end < text_.size() && is_of_plain_word(text_[end])) ++end;
  return text_.substr(at_, end - at_);
}

bool ProgramLine::skip(char sign) {
  if (!next_is(sign)) return false;
  ++at_;
  skip_blanks();
  return true;
}

bool ProgramLine::skip(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) return false;
  const size_t end = at_ + word.size();
  if (end < text_.size() && is_of_plain_word(text_[end])) return false;
  at_ = end;
  skip_blanks();
  return true;
}

bool ProgramLine::is_named() const {
  ProgramLine ahead = *this;
  if (next_is('"')) {
    ahead.quoted();
  } else {
    const std::string_view word = peek();
    if (word.empty()) return false;
    ahead.at_ += word.size();
    ahead.skip_blanks();
  }
  return ahead.next_is('=');
}

void ProgramLine::take(char sign) {
  if (!skip(sign)) expected(std::string("'") + sign + "'");
}

std::string ProgramLine::word(std::string_view what) {
  if (next_is('"')) return quoted();
  const std::string_view found = peek();
  if (found.empty()) expected(what);
  at_ += found.size();
  skip_blanks();
  return std::string(found);
}

std::string ProgramLine::value_name() {
  if (!next_is('%')) expected("a value as %x");
  ++at_;
  if (next_is('"')) return quoted();
  const size_t begin = at_;
  while (at_ < text_.size() && is_of_value_name(text_[at_])) ++at_;
  std::string name(text_.substr(begin, at_ - begin));
  if (name.empty()) expected("the name of a value behind %");
  skip_blanks();
  return name;
}

int64_t ProgramLine::integer(std::string_view what) {
  const std::string_view found = peek();
  const auto number = whole_number(found);
  if (!number) expected(what);
  at_ += found.size();
  skip_blanks();
  return *number;
}

int64_t ProgramLine::numbered(char letter, std::string_view what) {
  const std::string_view found = peek();
  const auto number = whole_number<uint32_t>(found.substr(std::min<size_t>(found.size(), 1)));
  if (!found.starts_with(letter) || !number) expected(what);
  skip(found);
  return *number;
}

std::string ProgramLine::quoted() {
  std::string text;
  for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
    if (text_[at_] == '\\')
      append_escaped(text);
    else
      text += text_[at_];
  }
  if (at_ >= text_.size()) wrong("a text has no closing quote");
  ++at_;
  skip_blanks();
  return text;
}

// Stands on a backslash, and then on the last character of the escape.
void ProgramLine::append_escaped(std::string& text) {
  const char kind = ++at_ < text_.size() ? text_[at_] : '\0';
  switch (kind) {
    case '"':
    case '\\': text += kind; break;
    case 'n': text += '\n'; break;
    case 't': text += '\t'; break;
    case 'r': text += '\r'; break;
    case 'x': {
      const uint32_t code = escaped_number("x", 2);
      if (code >= 0x80) wrong("an escape \\x beyond \\x7f: other characters stand as they are, in UTF-8");
      text += static_cast<char>(code);
      break;
    }
    case 'u': {
      const uint32_t code = escaped_number("u", 4);
      if (code >= 0xd800 && code < 0xe000) wrong("an escape \\u of half a character");
      append_utf8(text, code);
      break;
    }
    default: wrong("a text has an escape that is none of \\\" \\\\ \\n \\t \\r \\xHH \\uHHHH");
  }
}

// Stands on the escape's letter, and then on the last of its digits.
uint32_t ProgramLine::escaped_number(std::string_view letter, size_t count) {
  const auto number = whole_number<uint32_t>(text_.substr(at_ + 1, count), 16);
  if (!number || text_.size() - at_ - 1 < count)
    wrong(fmt::format("an escape \\{} needs {} hexadecimal digits", letter, count == 2 ? "two" : "four"));
  at_ += count;
  return *number;
}

Value ProgramLine::constant() {
  if (next_is('"')) return Value(quoted());
  const std::string_view found = peek();
  if (found.empty()) expected("a constant");
  at_ += found.size();
  skip_blanks();
  return word_constant(found);
}

Value ProgramLine::word_constant(std::string_view word) {
  if (const auto number = whole_number(word)) return Value(*number);
  if (word == "None") return {};
  if (word == "True") return Value(true);
  if (word == "False") return Value(false);
  if (word == "generator") return Value::generator();
  if (word == "device") {
    take('(');
    const Device named = device();
    take(')');
    return Value(named);
  }
  if (word == "complex") {
    take('(');
    const double first = real(peek());
    skip(peek());
    take(',');
    const double second = real(peek());
    skip(peek());
    take(')');
    return Value::complex(first, second);
  }
  if (const auto dtype = dtype_named(word)) return Value(*dtype);
  return Value(real(word));
}

double ProgramLine::real(std::string_view word) const {
  const auto number = whole_real(word);
  if (!number)
    wrong("'" + std::string(word) + "' is no constant: texts stand in quotes, values begin with %");
  return *number;
}

Device ProgramLine::device() {
  const std::string name = word("a device as cpu, cuda:0 or model");
  if (name == "model") return kModelDevice;
  if (name == "cpu") return {DeviceType::cpu};
  const std::string_view index = std::string_view(name).substr(std::min<size_t>(name.size(), 5));
  const auto number = whole_number<int8_t>(index);
  if (!name.starts_with("cuda:") || !number || *number < 0)
    wrong("'" + name + "' is no device; known: cpu, cuda:0 to cuda:127, model");
  return {DeviceType::cuda, *number};
}

void ProgramLine::expect_end() {
  if (!at_end()) expected("the end of the line");
}

void ProgramLine::wrong(std::string_view what) const { fail("{}:{}: {}", origin_, number_, what); }

void ProgramLine::expected(std::string_view what) const {
  constexpr size_t kShown = 40;
  const std::string_view rest = text_.substr(std::min(at_, text_.size()));
  if (rest.empty()) fail("{}:{}: the line ends where {} is expected", origin_, number_, what);
  size_t shown = std::min(rest.size(), kShown);
  while (shown < rest.size() && (static_cast<unsigned char>(rest[shown]) & 0xc0) == 0x80) ++shown;
  fail("{}:{}: expected {} before '{}{}'", origin_, number_, what, rest.substr(0, shown),
       shown < rest.size() ? "…" : "");
}

}  // namespace metaprof
