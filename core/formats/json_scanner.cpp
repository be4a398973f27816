// How a JsonDocument is made of a text: the whole text is checked, and its values are listed.

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/formats/json.h"
#include "core/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace metaprof {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t'); }

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

// The text, and what is said of it. Passed by value: see JsonScanner.
struct ScannedText {
  const std::string* origin;
  const char *begin, *end;

  char peek(const char* at) const { return at == end ? '\0' : *at; }
  const char* skip_blanks(const char* at) const {
    while (at != end && is_blank(*at)) ++at;
    return at;
  }
};

[[noreturn]] void syntax_error(ScannedText text, const char* at, std::string_view expected) {
  const std::string found = at == text.end ? "the end of the text" : std::string("'") + *at + "'";
  fail("{}: JSON syntax error at byte {} of {}: expected {}, got {}", *text.origin, at - text.begin,
       text.end - text.begin, expected, found);
}

[[noreturn]] void too_deep(ScannedText text, const char* at) {
  fail("{}: lists and objects are nested too deep in the JSON text, more than {} at byte {}", *text.origin,
       JsonDocument::kMaxDepth, at - text.begin);
}

const char* digits(ScannedText text, const char* at, const char* expected) {
  if (!is_digit(text.peek(at))) syntax_error(text, at, expected);
  while (is_digit(text.peek(at))) ++at;
  return at;
}

// Each of these takes where something begins and gives where it ends.
const char* number(ScannedText text, const char* begin) {
  const char* at = begin;
  if (text.peek(at) == '-') ++at;
  at = text.peek(at) == '0' ? at + 1 : digits(text, at, at == begin ? "a value" : "a digit");
  if (text.peek(at) == '.') at = digits(text, at + 1, "a digit");
  if (text.peek(at) == 'e' || text.peek(at) == 'E') {
    ++at;
    if (text.peek(at) == '+' || text.peek(at) == '-') ++at;
    at = digits(text, at, "a digit");
  }
  return at;
}

const char* word(ScannedText text, const char* at, std::string_view word) {
  if (!std::string_view(at, static_cast<size_t>(text.end - at)).starts_with(word))
    syntax_error(text, at, "a value");
  return at + word.size();
}

bool is_hexadecimal(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// May stand behind a backslash, alone.
bool is_escaped(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': return true;
    default: return false;
  }
}

// `at` is behind the backslash.
const char* escape(ScannedText text, const char* at) {
  if (at == text.end) syntax_error(text, at, "a closing quote");
  if (*at == 'u') {
    for (int i = 0; i < 4; ++i)
      if (++at == text.end || !is_hexadecimal(*at))
        syntax_error(text, at, "four hexadecimal digits after \\u");
    return at + 1;
  }
  if (!is_escaped(*at)) syntax_error(text, at, "one of \"\\/bfnrtu after a backslash");
  return at + 1;
}

const char* utf8_sequence(ScannedText text, const char* at) {
  const size_t length = utf8_length({at, static_cast<size_t>(text.end - at)});
  if (length == 0) fail("{}: the JSON text is not UTF-8 at byte {}", *text.origin, at - text.begin);
  return at + length;
}

// From the first special byte of a string to its closing quote.
const char* rest_of_string(ScannedText text, const char* at) {
  for (;; at = skip_plain(at, text.end)) {
    if (at == text.end) syntax_error(text, at, "a closing quote");
    if (*at == '"') return at;
    if (*at == '\\') {
      at = escape(text, at + 1);
    } else if (static_cast<unsigned char>(*at) < 0x20) {
      syntax_error(text, at, "no control character in a string");
    } else {
      at = utf8_sequence(text, at);
    }
  }
}

std::unique_ptr<JsonToken[]> with_more_room(std::unique_ptr<JsonToken[]> tokens, size_t used) {
  auto larger = std::make_unique_for_overwrite<JsonToken[]>(2 * used);
  std::copy_n(tokens.get(), used, larger.get());
  return larger;
}

// One pass over the text. What changes with every token stays in registers: all functions that change it are inlined,
// and no other function is given the scanner's address.
class JsonScanner {
 public:
  explicit JsonScanner(ScannedText text);

  std::unique_ptr<JsonToken[]> scan();

 private:
  [[gnu::always_inline]] inline const char* next_value(const char* at);
  [[gnu::always_inline]] inline const char* key(const char* at);
  [[gnu::always_inline]] inline const char* string(const char* at);
  [[gnu::always_inline]] inline const char* scalar(const char* at);
  [[gnu::always_inline]] inline void open(const char* at, Json::Type type);
  [[gnu::always_inline]] inline void close(const char* at);
  [[gnu::always_inline]] inline void add(Json::Type type, const char* begin, const char* end, bool escaped);
  uint32_t offset(const char* at) const { return static_cast<uint32_t>(at - text_.begin); }
  uint32_t count() const { return static_cast<uint32_t>(token_ - tokens_); }

  const ScannedText text_;
  std::unique_ptr<JsonToken[]> owner_;
  JsonToken *tokens_, *token_, *last_;  // the first, the next, and behind the last for which there is room
  size_t depth_ = 0;
  bool in_list_ = false;                    // the innermost of those that are open is a list
  uint32_t open_[JsonDocument::kMaxDepth];  // tokens of the lists and objects around the place
};

JsonScanner::JsonScanner(ScannedText text) : text_(text) {
  const auto size = static_cast<size_t>(text.end - text.begin);
  if (size >= std::numeric_limits<uint32_t>::max())
    fail("{}: the JSON text is too large: {} bytes", *text.origin, size);
  const size_t room = size / 8 + 1;  // graphs as the framework writes them have 8 to 13 bytes a token
  owner_ = std::make_unique_for_overwrite<JsonToken[]>(room);
  tokens_ = token_ = owner_.get();
  last_ = tokens_ + room;
}

void JsonScanner::add(Json::Type type, const char* begin, const char* end, bool escaped) {
  if (token_ == last_) [[unlikely]] {
    const size_t used = count();
    owner_ = with_more_room(std::move(owner_), used);
    tokens_ = owner_.get();
    token_ = tokens_ + used;
    last_ = token_ + used;
  }
  *token_ = {offset(begin), offset(end), count() + 1, type, escaped};
  ++token_;
}

void JsonScanner::open(const char* at, Json::Type type) {
  if (depth_ == JsonDocument::kMaxDepth) too_deep(text_, at);
  open_[depth_++] = count();
  in_list_ = type == Json::Type::list;
  add(type, at, at, false);
}

// `at` is behind the bracket.
void JsonScanner::close(const char* at) {
  JsonToken& token = tokens_[open_[--depth_]];
  token.end = offset(at);
  token.next = count();
  if (depth_ > 0) in_list_ = tokens_[open_[depth_ - 1]].type == Json::Type::list;
}

// From the opening quote to behind the closing one.
const char* JsonScanner::string(const char* at) {
  const char* const begin = ++at;
  at = skip_plain(at, text_.end);
  const bool is_plain = at != text_.end && *at == '"';
  if (!is_plain) at = rest_of_string(text_, at);
  add(Json::Type::string, begin, at, !is_plain);
  return at + 1;
}

const char* JsonScanner::scalar(const char* at) {
  const char* end;
  switch (text_.peek(at)) {
    case 'n': end = word(text_, at, "null"); return add(Json::Type::null, at, end, false), end;
    case 't': end = word(text_, at, "true"); return add(Json::Type::boolean, at, end, false), end;
    case 'f': end = word(text_, at, "false"); return add(Json::Type::boolean, at, end, false), end;
    default: end = number(text_, at); return add(Json::Type::number, at, end, false), end;
  }
}

// Up to where its value begins.
const char* JsonScanner::key(const char* at) {
  if (text_.peek(at) != '"') syntax_error(text_, at, "a string as key");
  at = text_.skip_blanks(string(at));
  if (text_.peek(at) != ':') syntax_error(text_, at, "':'");
  return text_.skip_blanks(at + 1);
}

// From behind a value: as many closing brackets as there are, then a comma, and an object's next key.
const char* JsonScanner::next_value(const char* at) {
  while (depth_ > 0) {
    at = text_.skip_blanks(at);
    const char c = text_.peek(at);
    if (c == ',') {
      at = text_.skip_blanks(at + 1);
      return in_list_ ? at : key(at);
    }
    if (c != (in_list_ ? ']' : '}')) syntax_error(text_, at, in_list_ ? "',' or ']'" : "',' or '}'");
    close(++at);
  }
  return at;
}

std::unique_ptr<JsonToken[]> JsonScanner::scan() {
  const char* at = text_.skip_blanks(text_.begin);
  if (at == text_.end) fail("{}: the JSON text is empty", *text_.origin);
  do {
    const char c = text_.peek(at);
    if (c == '"') {
      at = string(at);
    } else if (c == '{') {
      open(at, Json::Type::object);
      at = text_.skip_blanks(at + 1);
      if (text_.peek(at) != '}') {
        at = key(at);
        continue;
      }
    } else if (c == '[') {
      open(at, Json::Type::list);
      at = text_.skip_blanks(at + 1);
      if (text_.peek(at) != ']') continue;
    } else {
      at = scalar(at);
    }
    at = next_value(at);
  } while (depth_ > 0);
  at = text_.skip_blanks(at);
  if (at != text_.end) syntax_error(text_, at, "the end of the text");
  return std::move(owner_);
}

}  // namespace

JsonDocument::JsonDocument(std::string_view text, std::string origin)
    : text_(text),
      origin_(std::move(origin)),
      tokens_(JsonScanner({&origin_, text.data(), text.data() + text.size()}).scan()) {}

}  // namespace metaprof
