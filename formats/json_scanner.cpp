// How a JsonDocument is made of a text: the whole text is checked, and its values are listed.

#include <cstring>
#include <limits>

#include "core/error.h"
#include "formats/json.h"
#include "formats/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace metaprof {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// A byte at which the scan of a string has something to do: a quote, a backslash, less than 0x20, or beyond ASCII.
// As a signed number what is beyond ASCII is less than 0x20, too.
bool is_special(char c) { return static_cast<signed char>(c) < 0x20 || c == '"' || c == '\\'; }

// The first special byte, or `end`.
const char* skip_plain(const char* at, const char* end) {
#ifdef __SSE2__
  const __m128i space = _mm_set1_epi8(0x20), quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
  for (; end - at >= 16; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i special =
        _mm_or_si128(_mm_cmplt_epi8(bytes, space),
                     _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)));
    const auto found = static_cast<unsigned>(_mm_movemask_epi8(special));
    if (found != 0) return at + __builtin_ctz(found);
  }
#endif
  while (at != end && !is_special(*at)) ++at;
  return at;
}

}  // namespace

// Each function takes where something begins and gives where it ends.
class JsonScanner {
 public:
  JsonScanner(JsonDocument& document, std::string_view text);

  /// Checks the whole text. Errors: syntax, UTF-8, depth, size.
  void scan();

 private:
  const char* value(const char* at);
  const char* open(const char* at, Json::Type type);
  const char* close(const char* at);
  const char* after_value(const char* at);
  const char* key(const char* at);
  const char* string(const char* at);
  const char* escape(const char* at) const;
  const char* utf8_sequence(const char* at) const;
  const char* number(const char* at);
  const char* digits(const char* at, const char* expected) const;
  const char* word(const char* at, std::string_view word, Json::Type type);
  const char* skip_blanks(const char* at) const {
    while (at != end_ && is_blank(*at)) ++at;
    return at;
  }
  char peek(const char* at) const { return at == end_ ? '\0' : *at; }
  uint32_t offset(const char* at) const { return static_cast<uint32_t>(at - begin_); }
  void add(Json::Type type, const char* begin, const char* end, bool escaped = false) {
    const auto next = static_cast<uint32_t>(tokens_.size()) + 1;
    tokens_.push_back({offset(begin), offset(end), next, type, escaped});
  }
  [[noreturn]] void syntax_error(const char* at, std::string_view expected) const;

  const std::string& origin_;
  std::vector<JsonDocument::Token>& tokens_;
  const char* const begin_;
  const char* const end_;
  std::vector<uint32_t> open_;  // tokens of the lists and objects around the place
  bool is_begun_ =
      false;  // the value that was last come to is a list or object, and its first element is next
};

JsonScanner::JsonScanner(JsonDocument& document, std::string_view text)
    : origin_(document.origin_),
      tokens_(document.tokens_),
      begin_(text.data()),
      end_(text.data() + text.size()) {
  if (text.size() >= std::numeric_limits<uint32_t>::max())
    fail("{}: the JSON text is too large: {} bytes", origin_, text.size());
  tokens_.reserve(text.size() / 10);  // graphs as the framework writes them have 12 bytes a token
}

void JsonScanner::scan() {
  const char* at = skip_blanks(begin_);
  if (at == end_) fail("{}: the JSON text is empty", origin_);
  for (;;) {
    at = value(skip_blanks(at));
    if (is_begun_) continue;
    at = after_value(at);
    if (open_.empty()) break;
  }
  at = skip_blanks(at);
  if (at != end_) syntax_error(at, "the end of the text");
}

// As many closing brackets as there are, then a comma, and an object's next key.
const char* JsonScanner::after_value(const char* at) {
  while (!open_.empty()) {
    at = skip_blanks(at);
    const bool is_list = tokens_[open_.back()].type == Json::Type::list;
    const char c = peek(at);
    if (c == ',') return is_list ? at + 1 : key(skip_blanks(at + 1));
    if (c != (is_list ? ']' : '}')) syntax_error(at, is_list ? "',' or ']'" : "',' or '}'");
    at = close(at);
  }
  return at;
}

const char* JsonScanner::open(const char* at, Json::Type type) {
  if (open_.size() >= JsonDocument::kMaxDepth)
    fail("{}: lists and objects are nested too deep in the JSON text, more than {} at byte {}", origin_,
         JsonDocument::kMaxDepth, at - begin_);
  open_.push_back(static_cast<uint32_t>(tokens_.size()));
  add(type, at, at);
  return skip_blanks(at + 1);
}

const char* JsonScanner::close(const char* at) {
  JsonDocument::Token& token = tokens_[open_.back()];
  token.end = offset(at + 1);
  token.next = static_cast<uint32_t>(tokens_.size());
  open_.pop_back();
  return at + 1;
}

const char* JsonScanner::key(const char* at) {
  if (peek(at) != '"') syntax_error(at, "a string as key");
  at = skip_blanks(string(at));
  if (peek(at) != ':') syntax_error(at, "':'");
  return at + 1;
}

// A whole value, or its beginning: up to where its first element's value begins.
const char* JsonScanner::value(const char* at) {
  is_begun_ = false;
  switch (peek(at)) {
    case '{':
      at = open(at, Json::Type::object);
      if (peek(at) == '}') return close(at);
      is_begun_ = true;
      return key(at);
    case '[':
      at = open(at, Json::Type::list);
      if (peek(at) == ']') return close(at);
      is_begun_ = true;
      return at;
    case '"': return string(at);
    case 't': return word(at, "true", Json::Type::boolean);
    case 'f': return word(at, "false", Json::Type::boolean);
    case 'n': return word(at, "null", Json::Type::null);
    default: return number(at);
  }
}

const char* JsonScanner::word(const char* at, std::string_view word, Json::Type type) {
  if (static_cast<size_t>(end_ - at) < word.size() || std::string_view(at, word.size()) != word)
    syntax_error(at, "a value");
  add(type, at, at + word.size());
  return at + word.size();
}

const char* JsonScanner::digits(const char* at, const char* expected) const {
  if (!is_digit(peek(at))) syntax_error(at, expected);
  while (is_digit(peek(at))) ++at;
  return at;
}

const char* JsonScanner::number(const char* begin) {
  const char* at = begin;
  if (peek(at) == '-') ++at;
  at = peek(at) == '0' ? at + 1 : digits(at, at == begin ? "a value" : "a digit");
  if (peek(at) == '.') at = digits(at + 1, "a digit");
  if (peek(at) == 'e' || peek(at) == 'E') {
    ++at;
    if (peek(at) == '+' || peek(at) == '-') ++at;
    at = digits(at, "a digit");
  }
  add(Json::Type::number, begin, at);
  return at;
}

// `at` is the opening quote; the end is behind the closing one.
const char* JsonScanner::string(const char* at) {
  const char* const begin = ++at;
  bool escaped = false;
  for (;;) {
    at = skip_plain(at, end_);
    if (at == end_) syntax_error(at, "a closing quote");
    if (*at == '"') break;
    if (*at == '\\') {
      escaped = true;
      at = escape(at + 1);
    } else if (static_cast<unsigned char>(*at) < 0x20) {
      syntax_error(at, "no control character in a string");
    } else {
      at = utf8_sequence(at);
    }
  }
  add(Json::Type::string, begin, at, escaped);
  return at + 1;
}

// `at` is behind the backslash.
const char* JsonScanner::escape(const char* at) const {
  if (at == end_) syntax_error(at, "a closing quote");
  if (*at == 'u') {
    for (int i = 0; i < 4; ++i)
      if (++at == end_ || !std::strchr("0123456789abcdefABCDEF", *at) || *at == 0)
        syntax_error(at, "four hexadecimal digits after \\u");
    return at + 1;
  }
  if (*at == 0 || !std::strchr("\"\\/bfnrt", *at)) syntax_error(at, "one of \"\\/bfnrtu after a backslash");
  return at + 1;
}

const char* JsonScanner::utf8_sequence(const char* at) const {
  const size_t length = utf8_length({at, static_cast<size_t>(end_ - at)});
  if (length == 0) fail("{}: the JSON text is not UTF-8 at byte {}", origin_, at - begin_);
  return at + length;
}

void JsonScanner::syntax_error(const char* at, std::string_view expected) const {
  const std::string found = at == end_ ? "the end of the text" : std::string("'") + *at + "'";
  fail("{}: JSON syntax error at byte {} of {}: expected {}, got {}", origin_, at - begin_, end_ - begin_,
       expected, found);
}

JsonDocument::JsonDocument(std::string_view text, std::string origin)
    : text_(text), origin_(std::move(origin)) {
  JsonScanner(*this, text_).scan();
}

}  // namespace metaprof
