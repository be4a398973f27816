#include "core/formats/json.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/error.h"
#include "core/utf8.h"

namespace metaprof {
namespace {

std::string_view name_of(Json::Type type) {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "a number",
                                                "a string", "a list",    "an object"};
  return kNames[static_cast<int>(type)];
}

uint32_t hexadecimal(std::string_view digits) {
  uint32_t code = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  return code;
}

// One \uXXXX, or two that are a surrogate pair; `at` stands behind the u and is moved on. A lone surrogate
// becomes the replacement character.
uint32_t unicode_escape(std::string_view raw, size_t& at) {
  const uint32_t first = hexadecimal(raw.substr(at, 4));
  at += 4;
  if (first < 0xD800 || first > 0xDFFF) return first;
  if (first <= 0xDBFF && raw.substr(at, 2) == "\\u") {
    const uint32_t second = hexadecimal(raw.substr(at + 2, 4));
    if (second >= 0xDC00 && second <= 0xDFFF) {
      at += 6;
      return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    }
  }
  return 0xFFFD;
}

// `raw` has been checked by the scanner.
std::string unescaped(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (size_t at = 0; at < raw.size();) {
    const size_t plain = std::min(raw.find('\\', at), raw.size());
    text.append(raw, at, plain - at);
    if (plain == raw.size()) break;
    at = plain + 1;
    const char kind = raw[at++];
    switch (kind) {
      case 'b': text += '\b'; break;
      case 'f': text += '\f'; break;
      case 'n': text += '\n'; break;
      case 'r': text += '\r'; break;
      case 't': text += '\t'; break;
      case 'u': append_utf8(text, unicode_escape(raw, at)); break;
      default: text += kind;
    }
  }
  return text;
}

}  // namespace

// Down from the root: at each level the value whose tokens include the one looked for.
std::string JsonDocument::path_of(uint32_t wanted) const {
  std::string path;
  uint32_t at = 0;
  while (at != wanted) {
    const bool is_list = tokens_[at].type == Json::Type::list;
    uint32_t child = at + 1, position = 0;
    for (;; ++position) {
      const uint32_t value = is_list ? child : child + 1;
      if (wanted < tokens_[value].next) {
        if (is_list) {
          path += '[' + std::to_string(position) + ']';
        } else {
          const JsonToken& key = tokens_[child];
          if (!path.empty()) path += '.';
          path += text_.substr(key.begin, std::min<size_t>(key.end - key.begin, 80));
        }
        if (wanted < value) return path;  // the key itself
        at = value;
        break;
      }
      child = tokens_[value].next;
    }
  }
  return path;
}

std::string Json::path() const { return document_->path_of(token_); }

std::string_view Json::written() const {
  const auto& token = document_->tokens_[token_];
  const bool quoted = token.type == Type::string;
  return document_->text_.substr(token.begin - quoted, token.end - token.begin + 2 * quoted);
}

std::string Json::where() const {
  const std::string within = path();
  return document_->origin_ + (within.empty() ? "" : ": ") + within;
}

void Json::reject(std::string_view message) const { fail("{}: {}", where(), message); }

void Json::reject_type(Type wanted) const {
  reject(fmt::format("expected {}, got {}", name_of(wanted), name_of(type())));
}

Json Json::find(std::string_view key) const {
  expect(Type::object);
  const uint32_t end = next();
  for (Json member(document_, token_ + 1); member.token_ != end;) {
    const Json value(document_, member.token_ + 1);
    if (member.raw_string() == key) return value.is_null() ? Json() : value;
    member.token_ = value.next();
  }
  return {};
}

Json Json::at(std::string_view key) const {
  const Json value = find(key);
  if (!value) reject(fmt::format("{} is missing", key));
  return value;
}

std::pair<std::string_view, Json> Json::only_member() const {
  expect(Type::object);
  const Json key(document_, token_ + 1), value(document_, token_ + 2);
  if (next() == token_ + 1 || value.next() != next())
    reject(fmt::format("expected an object with one key, got {}", count()));
  return {key.raw_string(), value};
}

size_t Json::count() const {
  size_t count = 0;
  const uint32_t end = next();
  for (uint32_t at = token_ + 1; at != end; ++count)
    at = document_->tokens_[type() == Type::list ? at : at + 1].next;
  return count;
}

bool Json::boolean() const {
  expect(Type::boolean);
  return text() == "true";
}

int64_t Json::integer() const {
  if (type() != Type::number) reject(fmt::format("expected an integer, got {}", name_of(type())));
  const std::string_view digits = text();
  int64_t number = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (end != digits.data() + digits.size()) reject(fmt::format("expected an integer, got {}", digits));
  if (code != std::errc()) reject(fmt::format("{} is out of the range of 64-bit integers", digits));
  return number;
}

double Json::real() const {
  if (type() == Type::string) {
    if (raw_string() == "Infinity") return std::numeric_limits<double>::infinity();
    if (raw_string() == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (raw_string() == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  expect(Type::number);
  const std::string_view digits = text();
  double number = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc())
    reject(fmt::format("{} is out of the range of 64-bit floating numbers", digits));
  return number;
}

std::string Json::string() const {
  const std::string_view raw = raw_string();
  return document_->tokens_[token_].escaped ? unescaped(raw) : std::string(raw);
}

}  // namespace metaprof
