#include "program/torchscript/tokens.h"

#include <cctype>
#include <charconv>

#include "core/error.h"

namespace metaprof::script {
namespace {

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

class Lexer {
 public:
  Lexer(std::string_view code, const std::string& file) : code_(code), file_(file) {}

  std::vector<Token> run() {
    while (at_ < code_.size()) {
      if (at_line_begin_) {
        begin_line();
      } else {
        next();
      }
    }
    if (!tokens_.empty() && tokens_.back().kind != Token::Kind::line_end) add(Token::Kind::line_end);
    for (; indents_.size() > 1; indents_.pop_back()) add(Token::Kind::dedent);
    add(Token::Kind::end);
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < code_.size() ? code_[at_ + ahead] : '\0'; }
  void add(Token::Kind kind, std::string text = {}) { tokens_.push_back({kind, line_, std::move(text)}); }
  [[noreturn]] void wrong(std::string_view what) const { fail("{}:{}: {}", file_, line_, what); }

  void skip_comment() {
    while (at_ < code_.size() && peek() != '\n') ++at_;
  }

  void begin_line() {
    size_t indent = 0;
    for (; peek() == ' '; ++at_) ++indent;
    if (peek() == '#') skip_comment();
    if (peek() == '\r') ++at_;
    if (peek() == '\n') {
      ++at_, ++line_;
      return;
    }
    at_line_begin_ = false;
    if (at_ == code_.size()) return;
    if (indent > indents_.back()) {
      indents_.push_back(indent);
      add(Token::Kind::indent);
    }
    for (; indent < indents_.back(); indents_.pop_back()) add(Token::Kind::dedent);
    if (indent != indents_.back()) wrong("the line stands between two blocks");
  }

  void next() {
    const char c = peek();
    if (c == '\n') {
      if (open_ == 0) {
        add(Token::Kind::line_end);
        at_line_begin_ = true;
      }
      ++at_, ++line_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      skip_comment();
    } else if (begins_word(c)) {
      const size_t begin = at_;
      while (begins_word(peek()) || is_digit(peek())) ++at_;
      add(Token::Kind::word, std::string(code_.substr(begin, at_ - begin)));
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else if (c == '"' || c == '\'') {
      text();
    } else {
      sign();
    }
  }

  void number() {
    const size_t begin = at_;
    while (is_digit(peek()) || peek() == '.' || begins_word(peek()) ||
           ((peek() == '-' || peek() == '+') && (code_[at_ - 1] == 'e' || code_[at_ - 1] == 'E')))
      ++at_;
    add(Token::Kind::number, std::string(code_.substr(begin, at_ - begin)));
  }

  void text() {
    const char quote = code_[at_++];
    std::string text;
    while (peek() != quote) {
      if (at_ >= code_.size() || peek() == '\n') wrong("a text has no end");
      if (peek() == '\\') {
        ++at_;
        text += escaped();
      } else {
        text += code_[at_++];
      }
    }
    ++at_;
    add(Token::Kind::text, std::move(text));
  }

  // What printQuotedString writes: letters, \xHH and three octal digits.
  char escaped() {
    const char c = peek();
    size_t digits = 0;
    int base = 8;
    if (c == 'x') {
      ++at_, digits = 2, base = 16;
    } else if (c >= '0' && c <= '7') {
      digits = 3;
    }
    if (digits > 0) {
      int value = 0;
      const char* begin = code_.data() + at_;
      const auto [end, error] =
          std::from_chars(begin, begin + std::min(digits, code_.size() - at_), value, base);
      if (error != std::errc()) wrong("a text has an escape that is not known");
      at_ += static_cast<size_t>(end - begin);
      return static_cast<char>(value);
    }
    if (at_ < code_.size()) ++at_;
    switch (c) {
      case 'n': return '\n';
      case 't': return '\t';
      case 'r': return '\r';
      case 'a': return '\a';
      case 'b': return '\b';
      case 'f': return '\f';
      case 'v': return '\v';
      default: return c;
    }
  }

  void sign() {
    constexpr std::string_view kSigns = "()[]{},:.=-+~*/@%<>!|&^";
    const char c = code_[at_];
    if (kSigns.find(c) == kSigns.npos) wrong("a character that no code of torch.jit has");
    if (c == '(' || c == '[' || c == '{') ++open_;
    if ((c == ')' || c == ']' || c == '}') && open_ > 0) --open_;
    if (c == '-' && peek(1) == '>') {
      add(Token::Kind::sign, "->");
      at_ += 2;
      return;
    }
    add(Token::Kind::sign, std::string(1, c));
    ++at_;
  }

  const std::string_view code_;
  const std::string& file_;
  std::vector<Token> tokens_;
  std::vector<size_t> indents_ = {0};
  size_t at_ = 0;
  int line_ = 1, open_ = 0;
  bool at_line_begin_ = true;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view code, const std::string& file) {
  return Lexer(code, file).run();
}

}  // namespace metaprof::script
