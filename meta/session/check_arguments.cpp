#include "meta/session/check_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "meta/op/takes.h"
#include "meta/session/limits.h"

namespace metaprof {
namespace {

using Relation = Requirement::Relation;

[[noreturn]] void refuse(const Session& session, const Operator& op, std::string_view message) {
  const std::string_view module = session.trace.text(session.module);
  if (module.empty()) fail("{}: {}", op.name, message);
  fail("{}: {} ({})", op.name, message, module);
}

// A long list is cut: a message is one line.
std::string shown(const Value& value) {
  constexpr size_t kLongest = 120;
  std::string text = describe(value);
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // within a character
  return text.substr(0, end) + "…";
}

// A value that is none of those that the argument takes as they are.
void convert(Session& session, const Operator& op, size_t i, Value& value) {
  const Argument& argument = op.schema.arguments[i];
  if (argument.is_tensor() && value.is_number()) return void(value = Value(session.wrapped_number(value)));
  if (argument.list && argument.type == Type::integer && value.kind() == Value::Kind::integer)
    return void(value = Value(Sizes(size_t(std::max<int64_t>(argument.length, 1)), value.integer())));
  const bool all_defined = value.is_tensors() && std::ranges::all_of(value.tensors(), &Tensor::defined);
  if (argument.is_tensors() && all_defined) return;
  if (argument.type == Type::tensor && (value.is_none() || value.is_tensors()))
    refuse(session, op, fmt::format("no tensor is known for the argument '{}'", argument.name));
  refuse(
      session, op,
      fmt::format("the argument '{}' takes {}, got {}", argument.name, kind_wanted(argument), shown(value)));
}

void check_integers(const Session& session, const Operator& op, size_t i, const Value& list) {
  for (const int64_t element : list.integers())
    if (element < -kLargestInteger || element > kLargestInteger)
      refuse(session, op,
             fmt::format("the argument '{}' takes integers up to {}, got {}", op.schema.arguments[i].name,
                         kLargestInteger, shown(list)));
}

size_t length_of(const Value& list) {
  switch (list.kind()) {
    case Value::Kind::integers: return list.integers().size();
    case Value::Kind::reals: return list.reals().size();
    case Value::Kind::booleans: return list.booleans().size();
    case Value::Kind::tensors: return list.tensors().size();
    default: return 0;
  }
}

bool is_list(const Value& value) {
  return value.is_tensors() || value.kind() == Value::Kind::integers || value.kind() == Value::Kind::reals;
}

bool compare(auto left, Relation relation, auto right) {
  switch (relation) {
    case Relation::equal: return left == right;
    case Relation::not_equal: return left != right;
    case Relation::less: return left < right;
    case Relation::at_most: return left <= right;
    case Relation::results: return right <= 0 || left / right <= kMostResults;
    case Relation::more: return left > right;
    case Relation::at_least: return left >= right;
    default: return true;
  }
}

// Of no dimensions, 0 and -1 are the only one (wrap_dim).
bool is_dimension(int64_t dim, const Tensor& of) {
  const int64_t dims = std::max<int64_t>(of.dim(), 1);
  return -dims <= dim && dim < dims;
}

class Arguments {
 public:
  explicit Arguments(std::span<const Value> arguments) : arguments_(arguments) {}

  bool hold(const Requirement& requirement) const {
    if (requirement.flag >= 0 && arguments_[size_t(requirement.flag)].boolean() != requirement.flag_is)
      return true;
    const Value& left = arguments_[requirement.left.argument];
    switch (requirement.relation) {
      case Relation::given: return !left.is_none();
      case Relation::equal_lists: return lists_are_equal();
      case Relation::same_sizes: return are_of_same_sizes(left, arguments_[requirement.right.argument]);
      case Relation::dimension_of: return are_dimensions(left, arguments_[requirement.right.argument]);
      case Relation::sparse: return all_tensors(left, [](const Tensor& t) { return t.is_sparse(); });
      case Relation::strided: return all_tensors(left, [](const Tensor& t) { return !t.is_sparse(); });
      default: return compares(requirement, requirement.right);
    }
  }

 private:
  bool lists_are_equal() const {
    int64_t length = -1;
    for (const Value& value : arguments_) {
      if (!is_list(value)) continue;
      const auto own = static_cast<int64_t>(length_of(value));
      if (own == 0 || (length >= 0 && own != length)) return false;
      length = own;
    }
    return true;
  }

  static bool all_tensors(const Value& value, bool (*holds)(const Tensor&)) {
    if (value.is_tensor()) return holds(value.tensor());
    return !value.is_tensors() || std::ranges::all_of(value.tensors(), [&](const Tensor& tensor) {
      return !tensor.defined() || holds(tensor);
    });
  }

  static bool are_of_same_sizes(const Value& left, const Value& right) {
    return !left.is_tensor() || !right.is_tensor() || left.tensor().sizes() == right.tensor().sizes();
  }

  static bool are_dimensions(const Value& dims, const Value& of) {
    if (of.is_tensors())
      return std::ranges::all_of(of.tensors(),
                                 [&](const Tensor& one) { return are_dimensions(dims, Value(one)); });
    if (!of.is_tensor()) return true;
    if (dims.kind() == Value::Kind::integer) return is_dimension(dims.integer(), of.tensor());
    if (dims.kind() != Value::Kind::integers) return true;
    return std::ranges::all_of(dims.integers(), [&](int64_t dim) { return is_dimension(dim, of.tensor()); });
  }

  bool compares(const Requirement& requirement, const Term& right_term) const {
    bool holds = true;
    for_each(requirement.left, [&](auto left) {
      for_each(right_term, [&](auto right) { holds &= compare(left, requirement.relation, right); });
    });
    return holds;
  }

  template <
      class Visit>  // Visit(int64_t or double): each number that the term stands for; none that is not given
  void for_each(const Term& term, const Visit& visit) const {
    const Value& value = arguments_[term.argument];
    switch (term.of) {
      case Term::Of::constant: return visit(term.constant);
      case Term::Of::value: return for_value(value, visit);
      case Term::Of::each:
        if (value.kind() == Value::Kind::integers) std::ranges::for_each(value.integers(), visit);
        if (value.kind() == Value::Kind::reals) std::ranges::for_each(value.reals(), visit);
        return;
      case Term::Of::length:
        if (!value.is_none()) visit(static_cast<int64_t>(length_of(value)));
        return;
      default: break;
    }
    if (value.is_tensor()) for_tensor(term, value.tensor(), visit);
    if (value.is_tensors())
      for (const Tensor& tensor : value.tensors()) for_tensor(term, tensor, visit);
  }

  template <class Visit>
  static void for_value(const Value& value, const Visit& visit) {
    if (value.kind() == Value::Kind::real) visit(value.real());
    if (value.kind() == Value::Kind::integer || value.kind() == Value::Kind::boolean) visit(value.integer());
  }

  template <class Visit>
  void for_tensor(const Term& term, const Tensor& tensor, const Visit& visit) const {
    if (!tensor.defined()) return;
    if (term.of == Term::Of::dims) return visit(tensor.dim());
    if (term.of == Term::Of::elements) return visit(tensor.numel());
    const Value named = term.named ? arguments_[term.dimension] : Value(term.constant);
    if (named.kind() == Value::Kind::integer && tensor.dim() > 0 && is_dimension(named.integer(), tensor))
      visit(tensor.size(named.integer()));
  }

  std::span<const Value> arguments_;
};

std::string lengths_of_lists(std::span<const Value> arguments) {
  std::string lengths;
  for (const Value& value : arguments)
    if (is_list(value)) lengths += fmt::format("{}{}", lengths.empty() ? "" : " and ", length_of(value));
  return lengths;
}

[[noreturn]] void refuse_requirement(const Session& session, const Operator& op, size_t i,
                                     std::span<const Value> arguments) {
  const Requirement& requirement = op.takes.beyond_schema->all[i];
  const std::string& text = op.takes.beyond_schema->texts[i];
  if (requirement.relation == Relation::equal_lists)
    refuse(session, op, fmt::format("needs {}, not empty; got {}", text, lengths_of_lists(arguments)));
  std::string given = shown(arguments[requirement.left.argument]);
  if (requirement.relation == Relation::results)
    refuse(session, op, fmt::format("makes at most {} tensors; {}, got {}", kMostResults, text, given));
  if (requirement.right.of != Term::Of::constant)
    given += " and " + shown(arguments[requirement.right.argument]);
  refuse(session, op, fmt::format("needs {}, got {}", text, given));
}

void check_requirements(Session& session, const Operator& op, std::span<const Value> arguments) {
  const Requirements& requirements = *op.takes.beyond_schema;
  const Arguments given(arguments);
  for (size_t i = 0; i < requirements.all.size(); ++i)
    if (!given.hold(requirements.all[i])) refuse_requirement(session, op, i, arguments);
}

}  // namespace

void check_arguments(Session& session, const Operator& op, std::span<Value> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!(op.takes.kinds[i] >> static_cast<unsigned>(arguments[i].kind()) & 1))
      convert(session, op, i, arguments[i]);
    if (arguments[i].kind() == Value::Kind::integers) check_integers(session, op, i, arguments[i]);
  }
  if (op.takes.beyond_schema) check_requirements(session, op, arguments);
}

}  // namespace metaprof
