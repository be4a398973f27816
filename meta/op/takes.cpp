#include "meta/op/takes.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "core/error.h"

namespace metaprof {
namespace {

using Kind = Value::Kind;

using Kinds = uint16_t;

template <class... Kind>
constexpr Kinds bits(Kind... kinds) {
  return static_cast<Kinds>((0u | ... | (1u << static_cast<unsigned>(kinds))));
}

// A whole number stands for a number of any kind, as in Python; a list without elements for a list of any kind.
Kinds kinds_of_list(Type type) {
  switch (type) {
    case Type::tensor: return bits(Kind::tensors);
    case Type::integer: return bits(Kind::integers);
    case Type::boolean: return bits(Kind::booleans);
    case Type::real: return bits(Kind::reals, Kind::integers);
    case Type::scalar: return bits(Kind::reals, Kind::integers);
    default: return static_cast<Kinds>(~0u);
  }
}

Kinds kinds_of(Type type) {
  switch (type) {
    case Type::tensor: return bits(Kind::tensor);
    case Type::scalar: return bits(Kind::integer, Kind::real, Kind::boolean, Kind::complex);
    case Type::integer: return bits(Kind::integer, Kind::boolean);
    case Type::real: return bits(Kind::real, Kind::integer, Kind::boolean);
    case Type::boolean: return bits(Kind::boolean, Kind::integer);
    case Type::string: return bits(Kind::string);
    case Type::dtype:
    case Type::layout:
    case Type::memory_format: return bits(Kind::integer);
    case Type::device: return bits(Kind::device);
    case Type::generator: return bits(Kind::generator, Kind::none);
    default: return static_cast<Kinds>(~0u);
  }
}

Kinds kinds_of(const Argument& argument) {
  Kinds kinds = argument.list ? kinds_of_list(argument.type) : kinds_of(argument.type);
  if (argument.optional) kinds |= bits(Kind::none);
  // `Tensor[]`: each of them is looked at.
  if (argument.is_tensors() && !argument.optional_elements) kinds &= static_cast<Kinds>(~bits(Kind::tensors));
  return kinds;
}

class TakesParser {
 public:
  TakesParser(const Schema& schema, std::string_view text) : schema_(schema), text_(text) {}

  void parse() {
    while (!at_end()) {
      skip_blanks();
      const size_t begin = position_;
      parse_one();
      while (made_.texts.size() < made_.all.size())
        made_.texts.emplace_back(text_.substr(begin, position_ - begin));
      if (!accept(",")) break;
    }
    if (!at_end()) stop();
  }

  Requirements take() { return std::move(made_); }
  const std::vector<uint8_t>& may_be_undefined() const { return may_be_undefined_; }

 private:
  [[noreturn]] void stop() const {
    fail("record of {}: what it takes, '{}', is not understood at character {}", schema_.full_name(), text_,
         position_ + 1);
  }
  bool at_end() const { return position_ == text_.size(); }
  void skip_blanks() {
    while (!at_end() && text_[position_] == ' ') ++position_;
  }
  bool accept(std::string_view token) {
    const size_t before = position_;
    skip_blanks();
    if (text_.substr(position_).starts_with(token)) {
      position_ += token.size();
      return true;
    }
    position_ = before;
    return false;
  }
  std::string_view word() {
    skip_blanks();
    const size_t begin = position_;
    while (!at_end() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_'))
      ++position_;
    return text_.substr(begin, position_ - begin);
  }
  std::optional<int64_t> number() {
    skip_blanks();
    int64_t number = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc()) return std::nullopt;
    position_ += static_cast<size_t>(end - begin);
    return number;
  }
  uint8_t argument(std::string_view name) const {
    const int index = schema_.find(name_hash(name));
    if (index < 0) stop();
    return static_cast<uint8_t>(index);
  }

  void parse_one() {
    using Relation = Requirement::Relation;
    const size_t first = made_.all.size();
    if (accept("lists of one length")) {
      made_.all.push_back({.left = {}, .relation = Relation::equal_lists, .right = {}});
    } else if (accept("results ==")) {
      const Term left = term();
      made_.all.push_back(
          {.left = left, .relation = Relation::results, .right = accept("/") ? term() : Term{.constant = 1}});
    } else {
      const Term left = term();
      if (accept("may be undefined")) return may_be_undefined_.push_back(left.argument);
      parse_relation(left);
    }
    const bool only_if = accept("if ");
    if (!only_if && !accept("unless ")) return;
    const uint8_t flag = argument(word());
    for (size_t i = first; i < made_.all.size(); ++i) {
      made_.all[i].flag = flag;
      made_.all[i].flag_is = only_if;
    }
  }

  void parse_relation(const Term& left) {
    using Relation = Requirement::Relation;
    const auto add = [&](Relation relation, const Term& right) {
      made_.all.push_back({.left = left, .relation = relation, .right = right});
    };
    if (accept("given")) return add(Relation::given, {});
    if (accept("sparse")) return add(Relation::sparse, {});
    if (accept("strided")) return add(Relation::strided, {});
    if (!accept("in ")) {
      const Relation compares = relation();
      const Term right = term();
      if (left.of != Term::Of::sizes) return add(compares, right);
      if (compares != Relation::equal || right.of != Term::Of::sizes) stop();
      return add(Relation::same_sizes, right);
    }
    const Term first = term();
    if (!accept("to ")) return add(Relation::dimension_of, first);
    add(Relation::at_least, first);
    add(Relation::at_most, term());
  }

  Requirement::Relation relation() {
    using Relation = Requirement::Relation;
    static constexpr std::pair<std::string_view, Relation> kRelations[] = {
        {"==", Relation::equal},    {"!=", Relation::not_equal}, {"<=", Relation::at_most},
        {">=", Relation::at_least}, {"<", Relation::less},       {">", Relation::more}};
    for (const auto& [sign, relation] : kRelations)
      if (accept(sign)) return relation;
    stop();
  }

  Term term() {
    if (const std::optional<int64_t> constant = number()) return {.constant = *constant};
    Term term{.of = Term::Of::value, .argument = argument(word())};
    if (!accept(".")) return term;
    const std::string_view what = word();
    if (what == "each") term.of = Term::Of::each;
    if (what == "length") term.of = Term::Of::length;
    if (what == "dim") term.of = Term::Of::dims;
    if (what == "numel") term.of = Term::Of::elements;
    if (what == "sizes") term.of = Term::Of::sizes;
    if (what == "size") {
      term.of = Term::Of::size;
      if (!accept("(")) stop();
      if (const std::optional<int64_t> dimension = number()) {
        term.constant = *dimension;
      } else {
        term.named = true;
        term.dimension = argument(word());
      }
      if (!accept(")")) stop();
    }
    if (term.of == Term::Of::value) stop();
    return term;
  }

  const Schema& schema_;
  std::string_view text_;
  size_t position_ = 0;
  Requirements made_;
  std::vector<uint8_t> may_be_undefined_;  // arguments
};

// Flags of results come as a list of the schema's length; in `int[2]` it says how many one number stands for.
std::string with_lengths(const Schema& schema, std::string_view text) {
  std::string whole(text);
  for (const Argument& argument : schema.arguments)
    if (argument.list && argument.type == Type::boolean && argument.length > 0)
      whole += fmt::format("{}{}.length == {}", whole.empty() ? "" : ", ", argument.name, argument.length);
  return whole;
}

}  // namespace

ParsedTakes parse_takes(const Schema& schema, std::string_view text) {
  ParsedTakes takes;
  for (const Argument& argument : schema.arguments) takes.kinds.push_back(kinds_of(argument));
  const std::string whole = with_lengths(schema, text);
  TakesParser parser(schema, whole);
  parser.parse();
  for (const uint8_t argument : parser.may_be_undefined()) takes.kinds[argument] |= bits(Kind::none);
  takes.beyond_schema = parser.take();
  return takes;
}

std::string_view kind_wanted(const Argument& argument) {
  switch (argument.type) {
    case Type::tensor: return argument.list ? "a list of tensors" : "a tensor";
    case Type::scalar:
    case Type::real: return argument.list ? "a list of numbers" : "a number";
    case Type::integer: return argument.list ? "a list of integers" : "an integer";
    case Type::boolean: return argument.list ? "a list of booleans" : "a boolean";
    case Type::string: return "a string";
    case Type::device: return "a device";
    case Type::generator: return "a generator";
    default: return "an integer";  // dtypes, layouts and memory formats are numbers
  }
}

}  // namespace metaprof
