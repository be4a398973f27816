#include "meta/op/schema.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "core/error.h"

namespace metaprof {
namespace {

constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"Tensor", Type::tensor},       {"Scalar", Type::scalar},   {"int", Type::integer},
    {"SymInt", Type::integer},      {"float", Type::real},      {"bool", Type::boolean},
    {"SymBool", Type::boolean},     {"str", Type::string},      {"ScalarType", Type::dtype},
    {"Layout", Type::layout},       {"Device", Type::device},   {"MemoryFormat", Type::memory_format},
    {"Generator", Type::generator}, {"Dimname", Type::dimname}, {"Stream", Type::other},
    {"Storage", Type::other},
};

constexpr std::pair<std::string_view, Role> kRoles[] = {
    {"train", Role::training_flag},
    {"training", Role::training_flag},
    {"use_input_stats", Role::statistics_flag},
    {"dropout_p", Role::dropout_probability},
    {"cudnn_enabled", Role::cudnn_flag},
    {"cudnn_enable", Role::cudnn_flag},
    {"end", Role::length},
    {"n", Role::length},
    {"m", Role::length},
    {"size", Role::sizes},
    {"shape", Role::sizes},
    {"repeats", Role::repeats},
};

Role role_of(std::string_view argument) {
  for (const auto& [name, role] : kRoles)
    if (name == argument) return role;
  return Role::none;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Schema parse() {
    Schema schema;
    parse_name(schema);
    expect("(");
    bool keyword_only = false;
    while (!accept(")")) {
      if (accept("*")) {
        keyword_only = true;
      } else {
        Argument argument = parse_type();
        argument.name = word("an argument's name");
        argument.hash = name_hash(argument.name);
        argument.role = role_of(argument.name);
        argument.keyword_only = keyword_only;
        if (accept("=")) parse_default(argument);
        schema.arguments.push_back(std::move(argument));
      }
      if (!accept(",") && !peek(")")) stop("',' or ')'");
    }
    expect("->");
    parse_returns(schema);
    if (position_ != text_.size()) stop("the end");
    check_names(schema);
    return schema;
  }

 private:
  [[noreturn]] void stop(std::string_view expected) {
    fail("schema '{}': expected {} at character {}", text_, expected, position_ + 1);
  }
  void skip_blanks() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool peek(std::string_view token) {
    skip_blanks();
    return text_.substr(position_).starts_with(token);
  }
  bool accept(std::string_view token) {
    if (!peek(token)) return false;
    position_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) stop("'" + std::string(token) + "'");
  }
  std::string word(std::string_view what) {
    skip_blanks();
    const size_t begin = position_;
    auto belongs = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    while (position_ < text_.size() && belongs(text_[position_])) ++position_;
    if (begin == position_) stop(what);
    return std::string(text_.substr(begin, position_ - begin));
  }

  void parse_name(Schema& schema) {
    schema.name = word("an operator's name");
    schema.name = accept("::") ? schema.name + "::" + word("an operator's name") : "aten::" + schema.name;
    if (accept(".")) schema.overload = word("an overload's name");
  }

  Argument parse_type() {
    Argument argument;
    const std::string name = word("a type");
    for (auto [text, type] : kTypes)
      if (text == name) argument.type = type;
    if (accept("(")) parse_alias(argument);
    const bool optional = accept("?");
    if (accept("[")) {
      argument.list = true;
      argument.optional_elements = optional;
      if (!peek("]")) argument.length = std::stoll(word("a length"));
      expect("]");
      argument.optional = accept("?");
    } else {
      argument.optional = optional;
    }
    return argument;
  }

  void parse_alias(Argument& argument) {
    argument.alias = true;
    while (!accept(")")) {
      if (accept("!")) {
        argument.written = true;
      } else if (!accept("->") && !accept("*") && !accept("|")) {
        argument.alias_set = word("an alias set")[0];
      }
    }
  }

  void parse_returns(Schema& schema) {
    if (accept("(")) {
      while (!accept(")")) {
        schema.returns.push_back(parse_return());
        if (!accept(",") && !peek(")")) stop("',' or ')'");
      }
    } else {
      schema.returns.push_back(parse_return());
    }
    const size_t count = schema.returns.size();
    for (size_t i = 0; i < count; ++i) {
      Argument& result = schema.returns[i];
      if (result.name.empty()) result.name = count == 1 ? "result" : "result" + std::to_string(i);
      result.hash = name_hash(result.name);
    }
  }

  Argument parse_return() {
    Argument result = parse_type();
    if (!peek(",") && !peek(")") && position_ != text_.size()) result.name = word("a result's name");
    return result;
  }

  void parse_default(Argument& argument) {
    argument.has_default = true;
    if (accept("None")) return;
    if (accept("True")) return void(argument.default_value = Value(true));
    if (accept("False")) return void(argument.default_value = Value(false));
    if (accept("[")) return void(argument.default_value = parse_list(argument));
    if (peek("\"") || peek("'")) return void(argument.default_value = Value(quoted()));
    if (accept("contiguous_format")) return void(argument.default_value = Value(MemoryFormat::contiguous));
    if (accept("Mean")) return void(argument.default_value = Value(1));
    if (accept("Sum")) return void(argument.default_value = Value(2));
    if (accept("long")) return void(argument.default_value = Value(DType::i64));
    if (accept("strided")) return void(argument.default_value = Value(0));
    Value number = parse_number(argument.type);
    if (argument.list && number.kind() == Value::Kind::integer)
      number = Value(Sizes(size_t(std::max<int64_t>(argument.length, 1)), number.integer()));
    argument.default_value = std::move(number);
  }

  std::string quoted() {
    const char mark = text_[position_++];
    const size_t end = text_.find(mark, position_);
    if (end == std::string_view::npos) stop("a closing quote");
    std::string text(text_.substr(position_, end - position_));
    position_ = end + 1;
    return text;
  }

  Value parse_number(Type type) {
    skip_blanks();
    if (accept("inf")) return Value(INFINITY);
    if (accept("-inf")) return Value(-INFINITY);
    const char* begin = text_.data() + position_;
    const char* end = text_.data() + text_.size();
    double real = 0;
    auto [real_end, real_error] = std::from_chars(begin, end, real);
    if (real_error != std::errc()) stop("a default value");
    int64_t integer = 0;
    auto [integer_end, integer_error] = std::from_chars(begin, end, integer);
    position_ += size_t(real_end - begin);
    if (integer_end == real_end && type != Type::real) return Value(integer);
    return Value(real);
  }

  Value parse_list(const Argument& argument) {
    Sizes integers;
    Value::Booleans booleans;
    while (!accept("]")) {
      if (argument.type == Type::boolean) {
        booleans.push_back(accept("True") || (word("True or False"), false));
      } else {
        integers.push_back(parse_number(Type::integer).integer());
      }
      accept(",");
    }
    if (argument.type == Type::boolean) return Value(std::move(booleans));
    if (argument.type == Type::tensor) return Value(Value::Tensors{});
    return Value(integers);
  }

  void check_names(const Schema& schema) {
    std::vector<const Argument*> all;
    for (const Argument& argument : schema.arguments) all.push_back(&argument);
    for (const Argument& result : schema.returns) all.push_back(&result);
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (all[i]->hash == all[j]->hash && !(all[i]->alias && all[j]->alias))
          fail("schema '{}': the names '{}' and '{}' cannot be told apart", text_, all[j]->name,
               all[i]->name);
  }

  std::string_view text_;
  size_t position_ = 0;
};

int find_hash(const std::vector<Argument>& arguments, uint32_t hash) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].hash == hash) return static_cast<int>(i);
  return -1;
}

}  // namespace

int Schema::find(uint32_t hash) const { return find_hash(arguments, hash); }
int Schema::place_of(std::string_view name, size_t position) const {
  if (!name.empty()) return find(name_hash(name));
  return position < arguments.size() ? static_cast<int>(position) : -1;
}
int Schema::find_return(uint32_t hash) const { return find_hash(returns, hash); }

Schema parse_schema(std::string_view text) { return Parser(text).parse(); }

}  // namespace metaprof
