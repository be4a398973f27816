#include "program/torchscript/code.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/error.h"
#include "program/torchscript/tokens.h"

namespace metaprof::script {
namespace {

constexpr int kDeepestCode = 200;

class CodeParser {
 public:
  CodeParser(std::string_view text, const std::string& module, const std::string& file, Code& code)
      : tokens_(tokens_of(text, file)), module_(module), file_(file), code_(code) {}

  void run() {
    while (!is(Token::Kind::end)) {
      if (accept_word("def")) {
        Function function = rest_of_function();
        code_.functions.insert_or_assign(module_ + '.' + function.name, std::move(function));
      } else if (accept_word("class")) {
        Class parsed = rest_of_class();
        std::string name = parsed.name;
        code_.classes.insert_or_assign(std::move(name), std::move(parsed));
      } else if (!accept(Token::Kind::line_end)) {
        // "op_version_set = 1", "import …": lines of archives of earlier versions
        while (!is(Token::Kind::line_end) && !is(Token::Kind::end)) ++at_;
      }
    }
  }

 private:
  using Kind = Expression::Kind;

  class Depth {
   public:
    explicit Depth(CodeParser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepestCode) parser_.wrong("too much stands inside each other");
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    CodeParser& parser_;
  };

  const Token& token() const { return tokens_[at_]; }
  bool is(Token::Kind kind) const { return token().kind == kind; }
  bool is_sign(std::string_view sign) const { return is(Token::Kind::sign) && token().text == sign; }
  bool accept(Token::Kind kind) {
    if (!is(kind)) return false;
    if (kind != Token::Kind::end) ++at_;
    return true;
  }
  bool accept_sign(std::string_view sign) { return is_sign(sign) && accept(Token::Kind::sign); }
  bool accept_word(std::string_view word) {
    return is(Token::Kind::word) && token().text == word && accept(Token::Kind::word);
  }
  [[noreturn]] void wrong(std::string_view what) const {
    fail("{}:{}: {}; is it an archive of torch.jit.save? Save it again", file_, token().line, what);
  }
  void take_sign(std::string_view sign) {
    if (!accept_sign(sign)) {
      const std::string expected = "expected '" + std::string(sign) + "'";
      wrong(expected);
    }
  }
  void take(Token::Kind kind, std::string_view what) {
    if (!accept(kind)) wrong(what);
  }
  std::string take_word() {
    if (!is(Token::Kind::word)) wrong("expected a name");
    return tokens_[at_++].text;
  }
  Expression made(Kind kind) const {
    Expression expression;
    expression.kind = kind;
    expression.line = token().line;
    return expression;
  }

  // ---- expressions

  // Whoever walks a tree recurs.
  Expression grown(Expression expression) const {
    for (const Expression& part : expression.parts)
      expression.height = std::max(expression.height, part.height + 1);
    if (expression.height > kDeepestCode) wrong("too much stands inside each other");
    return expression;
  }

  static bool begins_qualified(const std::string& word) {
    return word == "torch" || word == "ops" || word == "__torch__" || word == "CONSTANTS";
  }

  Expression expression() {
    const Depth depth(*this);
    Expression left = grown(primary());
    for (;;) {
      if (is_sign(".")) {
        ++at_;
        if (left.kind == Kind::qualified) {
          left.text += '.' + take_word();
          continue;
        }
        Expression outer = made(Kind::attribute);
        outer.text = take_word();
        outer.parts.push_back(std::move(left));
        left = grown(std::move(outer));
      } else if (is_sign("(")) {
        left = grown(rest_of_call(std::move(left)));
      } else if (is_sign("[")) {
        Expression outer = made(Kind::subscript);
        ++at_;
        outer.parts.push_back(std::move(left));
        elements("]", outer.parts);
        left = grown(std::move(outer));
      } else {
        return left;
      }
    }
  }

  Expression primary() {
    if (accept_sign("-")) return negative();
    if (is_sign("(")) return parenthesis();
    if (is_sign("[")) {
      Expression list = made(Kind::list);
      ++at_;
      elements("]", list.parts);
      return list;
    }
    if (is_sign("{")) return dictionary();
    if (is(Token::Kind::number)) return number();
    if (is(Token::Kind::text)) {
      Expression text = made(Kind::text);
      text.text = tokens_[at_++].text;
      while (is(Token::Kind::text)) text.text += tokens_[at_++].text;
      return text;
    }
    return word();
  }

  Expression word() {
    if (is(Token::Kind::word) && token().text == "inf") return infinite(false);
    Expression named = made(Kind::variable);
    named.text = take_word();
    if (named.text == "True" || named.text == "False") {
      named.kind = Kind::boolean;
      named.integer = named.text == "True";
    } else if (named.text == "None") {
      named.kind = Kind::none;
    } else if (begins_qualified(named.text)) {
      named.kind = Kind::qualified;
    }
    return named;
  }

  Expression number() {
    Expression number = made(Kind::integer);
    const std::string text = tokens_[at_++].text;
    const char *begin = text.data(), *end = begin + text.size();
    if (text.find_first_of(".eE") == text.npos) {
      const auto [rest, error] = std::from_chars(begin, end, number.integer);
      if (rest == end && error == std::errc()) return number;
    } else {
      number.kind = Kind::real;
      const auto [rest, error] = std::from_chars(begin, end, number.real);
      if (rest == end && error == std::errc()) return number;
    }
    wrong("a number is malformed, or of more than 64 bits");
  }

  Expression negative() {
    if (is(Token::Kind::word) && token().text == "inf") return infinite(true);
    if (!is(Token::Kind::number)) wrong("expected a number behind '-'");
    // The least integer has no positive counterpart.
    if (token().text == "9223372036854775808") {
      Expression least = made(Kind::integer);
      ++at_;
      least.integer = std::numeric_limits<int64_t>::min();
      return least;
    }
    Expression negative = number();
    negative.integer = -negative.integer;
    negative.real = -negative.real;
    return negative;
  }

  Expression infinite(bool negative) {
    Expression infinite = made(Kind::real);
    ++at_;
    infinite.real =
        negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    return infinite;
  }

  // (x) is x; (x,) and (x, y) are tuples
  Expression parenthesis() {
    Expression tuple = made(Kind::tuple);
    ++at_;
    if (accept_sign(")")) return tuple;
    tuple.parts.push_back(expression());
    if (accept_sign(")")) {
      Expression inner = std::move(tuple.parts[0]);
      return inner;
    }
    take_sign(",");
    elements(")", tuple.parts);
    return tuple;
  }

  Expression dictionary() {
    Expression dictionary = made(Kind::dictionary);
    ++at_;
    while (!accept_sign("}")) {
      dictionary.parts.push_back(expression());
      take_sign(":");
      dictionary.parts.push_back(expression());
      if (!is_sign("}")) take_sign(",");
    }
    return dictionary;
  }

  void elements(std::string_view closing, std::vector<Expression>& into) {
    while (!accept_sign(closing)) {
      into.push_back(expression());
      if (!is_sign(closing)) take_sign(",");
    }
  }

  Expression rest_of_call(Expression callee) {
    Expression call = made(Kind::call);
    ++at_;
    call.parts.push_back(std::move(callee));
    call.keywords.emplace_back();
    while (!accept_sign(")")) {
      std::string keyword;
      if (is(Token::Kind::word) && tokens_[at_ + 1].kind == Token::Kind::sign &&
          tokens_[at_ + 1].text == "=") {
        keyword = take_word();
        ++at_;
      }
      call.parts.push_back(expression());
      call.keywords.push_back(std::move(keyword));
      if (!is_sign(")")) take_sign(",");
    }
    return call;
  }

  // ---- statements

  std::vector<Statement> block() {
    const Depth depth(*this);
    take_sign(":");
    take(Token::Kind::line_end, "expected the end of the line behind ':'");
    take(Token::Kind::indent, "expected a block");
    std::vector<Statement> statements;
    while (!accept(Token::Kind::dedent)) statements.push_back(statement());
    return statements;
  }

  Statement statement() {
    Statement made;
    made.line = token().line;
    if (accept_word("if")) return branch(std::move(made));
    if (accept_word("while")) {
      made.kind = Statement::Kind::while_loop;
      made.value = expression();
      made.body = block();
      return made;
    }
    if (accept_word("for")) {
      made.kind = Statement::Kind::for_loop;
      made.targets.push_back(word());
      if (!accept_word("in")) wrong("expected 'in'");
      made.value = expression();
      made.body = block();
      return made;
    }
    if (accept_word("return")) {
      made.kind = Statement::Kind::return_value;
      if (!is(Token::Kind::line_end)) made.value = expressions_of_a_line();
    } else if (!accept_word("pass")) {
      made.kind = Statement::Kind::expression;
      made.value = expressions_of_a_line();
      if (accept_sign(":")) (void)expression();  // x : Optional[int] = None
      if (accept_sign("=")) {
        made.kind = Statement::Kind::assignment;
        if (made.value.kind == Kind::tuple) {
          made.targets = std::move(made.value.parts);
        } else {
          made.targets.push_back(std::move(made.value));
        }
        made.value = expressions_of_a_line();
        if (made.targets.size() == 1) unpacks_one(made);
      }
    }
    take(Token::Kind::line_end, "expected the end of the line");
    return made;
  }

  // `a, = x`: one target, and yet x is taken apart.
  void unpacks_one(Statement& assignment) const {
    if (!one_target_in_tuple_) return;
    Expression first = made(Kind::subscript);
    Expression zero = made(Kind::integer);
    first.parts.push_back(std::move(assignment.value));
    first.parts.push_back(std::move(zero));
    assignment.value = std::move(first);
  }

  // x, or the tuple `x, y` or `x, y,`
  Expression expressions_of_a_line() {
    Expression first = expression();
    one_target_in_tuple_ = false;
    if (!is_sign(",")) return first;
    Expression tuple = made(Kind::tuple);
    tuple.parts.push_back(std::move(first));
    while (accept_sign(",")) {
      if (is_sign("=") || is(Token::Kind::line_end)) break;
      tuple.parts.push_back(expression());
    }
    one_target_in_tuple_ = tuple.parts.size() == 1;
    return tuple;
  }

  Statement branch(Statement made) {
    made.kind = Statement::Kind::branch;
    made.value = expression();
    made.body = block();
    if (accept_word("else")) made.otherwise = block();
    return made;
  }

  // ---- definitions

  Function rest_of_function() {
    Function function;
    function.file = file_;
    function.name = take_word();
    take_sign("(");
    while (!accept_sign(")")) {
      Parameter& parameter = function.parameters.emplace_back();
      parameter.name = take_word();
      if (accept_sign(":")) parameter.type = expression();
      if (accept_sign("=")) {
        parameter.has_default = true;
        parameter.default_value = expression();
      }
      if (!is_sign(")")) take_sign(",");
    }
    if (accept_sign("->")) (void)expression();
    function.body = block();
    return function;
  }

  Class rest_of_class() {
    Class parsed;
    parsed.name = module_ + '.' + take_word();
    if (accept_sign("(")) {
      const std::string base = take_word();
      parsed.is_module = base == "Module";
      parsed.is_tuple = base == "NamedTuple";
      take_sign(")");
    }
    take_sign(":");
    take(Token::Kind::line_end, "expected the end of the line behind ':'");
    take(Token::Kind::indent, "expected a class's attributes");
    while (!accept(Token::Kind::dedent)) member(parsed);
    return parsed;
  }

  void member(Class& parsed) {
    if (accept_word("def")) {
      Function method = rest_of_function();
      std::string name = method.name;
      parsed.methods.insert_or_assign(std::move(name), std::move(method));
      return;
    }
    if (!accept_word("pass")) {
      Expression named = expression();
      std::string name = named.text;
      // __annotations__["0"] = type: an attribute whose name is none in Python
      const bool annotation = named.kind == Kind::subscript && named.parts.size() == 2;
      if (annotation) name = named.parts[1].text;
      if (accept_sign(":")) (void)expression();
      Expression value;
      const bool has_value = accept_sign("=");
      if (has_value) value = expression();
      if (name == "__parameters__") {
        parsed.parameters = texts_of(value);
      } else if (name == "__buffers__") {
        parsed.buffers = texts_of(value);
      } else {
        parsed.fields.push_back(name);
        if (has_value && !annotation) parsed.constants.insert_or_assign(name, std::move(value));
      }
    }
    take(Token::Kind::line_end, "expected the end of the line");
  }

  static std::vector<std::string> texts_of(const Expression& list) {
    std::vector<std::string> texts;
    for (const Expression& element : list.parts) texts.push_back(element.text);
    return texts;
  }

  const std::vector<Token> tokens_;
  const std::string &module_, &file_;
  Code& code_;
  size_t at_ = 0;
  int depth_ = 0;
  bool one_target_in_tuple_ = false;
};

}  // namespace

void parse_code(std::string_view text, const std::string& module, const std::string& file, Code& code) {
  CodeParser(text, module, file, code).run();
}

}  // namespace metaprof::script
