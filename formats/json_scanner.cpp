// How a JsonDocument is made of a text: the whole text is checked, and its values are listed.

#include <cstring>
#include <limits>

#include "core/error.h"
#include "formats/json.h"
#include "formats/utf8.h"

namespace metaprof {
namespace {

constexpr uint64_t repeated(uint8_t byte) { return 0x0101010101010101u * byte; }

// Whether one of eight bytes is less than 0x20, a quote, a backslash, or beyond ASCII: bytes at which the
// scan of a string has something to do.
bool is_plain(const char* text) {
  uint64_t word;
  std::memcpy(&word, text, sizeof word);
  const auto has_zero = [](uint64_t bytes) { return (bytes - repeated(1)) & ~bytes & repeated(0x80); };
  const uint64_t control = (word - repeated(0x20)) & ~word & repeated(0x80);
  return ((word & repeated(0x80)) | control | has_zero(word ^ repeated('"')) |
          has_zero(word ^ repeated('\\'))) == 0;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

class JsonScanner {
 public:
  /// Values inside more than `fold_depth` lists and objects get no tokens.
  JsonScanner(JsonDocument& document, std::string_view text, int fold_depth);

  /// Checks the whole text. Errors: syntax, UTF-8, depth, size.
  void scan();

 private:
  void skip_blanks();
  void open(Json::Type type);
  bool close();
  bool value();
  void separator();
  void key();
  void string();
  void escape();
  void utf8_sequence();
  void number();
  void word(std::string_view word, Json::Type type);
  void add(Json::Type type, size_t begin, size_t end, bool escaped = false);
  bool recorded() const { return static_cast<int>(open_.size()) <= fold_depth_; }
  [[noreturn]] void syntax_error(std::string_view expected) const;

  JsonDocument& document_;
  const char* const begin_;
  const char* const end_;
  const char* at_;
  const int fold_depth_;

  struct Open {
    uint32_t token;
    Json::Type type;
  };
  std::vector<Open> open_;
};

JsonScanner::JsonScanner(JsonDocument& document, std::string_view text, int fold_depth)
    : document_(document),
      begin_(text.data()),
      end_(text.data() + text.size()),
      at_(text.data()),
      fold_depth_(fold_depth) {
  if (text.size() >= std::numeric_limits<uint32_t>::max())
    fail("{}: the JSON text is too large: {} bytes", document.origin_, text.size());
}

void JsonScanner::scan() {
  bool complete = false;
  skip_blanks();
  if (at_ == end_) fail("{}: the JSON text is empty", document_.origin_);
  while (!complete) {
    complete = value();
    // After a value: as many closing brackets as there are, then a comma, or the end.
    while (complete && !open_.empty()) {
      skip_blanks();
      if (at_ != end_ && *at_ == ',') {
        separator();
        complete = false;
      } else if (!close()) {
        syntax_error(open_.back().type == Json::Type::list ? "',' or ']'" : "',' or '}'");
      }
    }
  }
  skip_blanks();
  if (at_ != end_) syntax_error("the end of the text");
}

void JsonScanner::skip_blanks() {
  while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
}

void JsonScanner::add(Json::Type type, size_t begin, size_t end, bool escaped) {
  if (!recorded()) return;
  const auto index = static_cast<uint32_t>(document_.tokens_.size());
  document_.tokens_.push_back(
      {static_cast<uint32_t>(begin), static_cast<uint32_t>(end), index + 1, type, escaped, false});
}

void JsonScanner::open(Json::Type type) {
  if (open_.size() >= JsonDocument::kMaxDepth)
    fail("{}: lists and objects are nested too deep in the JSON text, more than {} at byte {}",
         document_.origin_, JsonDocument::kMaxDepth, at_ - begin_);
  const auto index = static_cast<uint32_t>(document_.tokens_.size());
  add(type, static_cast<size_t>(at_ - begin_), 0);
  open_.push_back({index, type});
  ++at_;
}

// One closing bracket; false if there is none that fits.
bool JsonScanner::close() {
  const Open innermost = open_.back();
  if (at_ == end_ || *at_ != (innermost.type == Json::Type::list ? ']' : '}')) return false;
  ++at_;
  const bool contents_recorded = recorded();
  open_.pop_back();
  if (recorded()) {
    JsonDocument::Token& token = document_.tokens_[innermost.token];
    token.end = static_cast<uint32_t>(at_ - begin_);
    token.next = static_cast<uint32_t>(document_.tokens_.size());
    token.folded = !contents_recorded;
  }
  return true;
}

void JsonScanner::separator() {
  ++at_;
  skip_blanks();
  if (open_.back().type == Json::Type::object) key();
}

void JsonScanner::key() {
  if (at_ == end_ || *at_ != '"') syntax_error("a string as key");
  string();
  skip_blanks();
  if (at_ == end_ || *at_ != ':') syntax_error("':'");
  ++at_;
}

// A whole value, or the beginning of one: up to where its first element's value begins. True if whole.
bool JsonScanner::value() {
  skip_blanks();
  if (at_ == end_) syntax_error("a value");
  switch (*at_) {
    case '{':
      open(Json::Type::object);
      skip_blanks();
      if (close()) return true;
      key();
      return false;
    case '[':
      open(Json::Type::list);
      skip_blanks();
      return close();
    case '"': string(); return true;
    case 't': word("true", Json::Type::boolean); return true;
    case 'f': word("false", Json::Type::boolean); return true;
    case 'n': word("null", Json::Type::null); return true;
    default: number(); return true;
  }
}

void JsonScanner::word(std::string_view word, Json::Type type) {
  if (static_cast<size_t>(end_ - at_) < word.size() || std::string_view(at_, word.size()) != word)
    syntax_error("a value");
  const auto begin = static_cast<size_t>(at_ - begin_);
  at_ += word.size();
  add(type, begin, begin + word.size());
}

void JsonScanner::number() {
  const char* const begin = at_;
  const auto digits = [&] {
    if (at_ == end_ || !is_digit(*at_)) syntax_error(at_ == begin ? "a value" : "a digit");
    while (at_ != end_ && is_digit(*at_)) ++at_;
  };
  if (*at_ == '-') ++at_;
  if (at_ != end_ && *at_ == '0') {
    ++at_;
  } else {
    digits();
  }
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    digits();
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    digits();
  }
  add(Json::Type::number, static_cast<size_t>(begin - begin_), static_cast<size_t>(at_ - begin_));
}

void JsonScanner::string() {
  const auto begin = static_cast<size_t>(++at_ - begin_);
  bool escaped = false;
  for (;;) {
    while (end_ - at_ >= 8 && is_plain(at_)) at_ += 8;
    if (at_ == end_) syntax_error("a closing quote");
    const auto code = static_cast<unsigned char>(*at_);
    if (code == '"') break;
    if (code < 0x20) syntax_error("no control character in a string");
    if (code == '\\') {
      escaped = true;
      escape();
    } else if (code >= 0x80) {
      utf8_sequence();
    } else {
      ++at_;
    }
  }
  add(Json::Type::string, begin, static_cast<size_t>(at_ - begin_), escaped);
  ++at_;
}

void JsonScanner::escape() {
  ++at_;
  if (at_ == end_) syntax_error("a closing quote");
  if (*at_ == 'u') {
    ++at_;
    for (int i = 0; i < 4; ++i, ++at_)
      if (at_ == end_ || !std::strchr("0123456789abcdefABCDEF", *at_) || *at_ == 0)
        syntax_error("four hexadecimal digits after \\u");
    return;
  }
  if (*at_ == 0 || !std::strchr("\"\\/bfnrt", *at_)) syntax_error("one of \"\\/bfnrtu after a backslash");
  ++at_;
}

void JsonScanner::utf8_sequence() {
  const size_t length = utf8_length({at_, static_cast<size_t>(end_ - at_)});
  if (length == 0) fail("{}: the JSON text is not UTF-8 at byte {}", document_.origin_, at_ - begin_);
  at_ += length;
}

void JsonScanner::syntax_error(std::string_view expected) const {
  const std::string found = at_ == end_ ? "the end of the text" : std::string("'") + *at_ + "'";
  fail("{}: JSON syntax error at byte {} of {}: expected {}, got {}", document_.origin_, at_ - begin_,
       end_ - begin_, expected, found);
}

void JsonDocument::scan(int fold_depth) { JsonScanner(*this, text_, fold_depth).scan(); }

}  // namespace metaprof
