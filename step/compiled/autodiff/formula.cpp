#include "step/compiled/autodiff/formula.h"

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "step/compiled/ir/numbers.h"

namespace metaprof::ir {
namespace {

Term of_two(std::string_view tensors, std::string_view numbers, Term a, Term b) {
  return a.formula->call(b.is_tensor() ? tensors : numbers, {a, b});
}

std::vector<Value*> values_of(const std::vector<Term>& terms) {
  std::vector<Value*> values;
  values.reserve(terms.size());
  for (const Term& term : terms) values.push_back(term.value);
  return values;
}

// A constant is none that the argument takes: the call is refused when it runs.
bool is_wrong(const Constant& value, const Argument& argument) {
  using Kind = Constant::Kind;
  if (value.is_none() || argument.is_tensor()) return false;
  switch (type_of(argument).kind) {
    case Type::Kind::integers: return value.kind() != Kind::integers;
    case Type::Kind::reals: return value.kind() != Kind::reals;
    case Type::Kind::booleans: return value.kind() != Kind::booleans;
    case Type::Kind::boolean: return value.kind() != Kind::boolean;
    case Type::Kind::integer: return value.kind() != Kind::integer;
    case Type::Kind::real: return !value.is_number() || value.kind() == Kind::complex;
    case Type::Kind::scalar: return !value.is_number();
    default: return false;
  }
}

bool has_wrong_constant(const Node& call) {
  const auto& arguments = call.op->schema.arguments;
  for (size_t i = 0; i < arguments.size() && i < call.inputs.size(); ++i)
    if (call.has_constant(i) && is_wrong(call.constant(i), arguments[i])) return true;
  return false;
}

}  // namespace

Term operator*(Term a, Term b) { return of_two("aten::mul.Tensor", "aten::mul.Scalar", a, b); }
Term operator*(Term a, const Constant& b) { return a * a.formula->constant(b); }
Term operator*(const Constant& a, Term b) { return b * a; }
Term operator+(Term a, Term b) { return of_two("aten::add.Tensor", "aten::add.Scalar", a, b); }
Term operator+(Term a, const Constant& b) { return a + a.formula->constant(b); }
Term operator-(Term a, Term b) { return of_two("aten::sub.Tensor", "aten::sub.Scalar", a, b); }
Term operator-(Term a, const Constant& b) { return a - a.formula->constant(b); }
// The framework's language has no difference from a number.
Term operator-(const Constant& a, Term b) { return -b + a; }
Term operator-(Term a) { return a.formula->call("aten::neg", {a}); }
Term operator/(Term a, Term b) { return of_two("aten::div.Tensor", "aten::div.Scalar", a, b); }
Term operator/(Term a, const Constant& b) { return a / a.formula->constant(b); }

Formula::Formula(Node& call, Block& body, std::vector<Value*> incoming, const Registry& registry,
                 Capture capture)
    : call_(call),
      body_(body),
      incoming_(std::move(incoming)),
      registry_(registry),
      capture_(std::move(capture)),
      behind_(&call) {
  for (const auto& output : call.outputs) results_.push_back(output.get());
}

size_t Formula::place_of(std::string_view argument) const {
  const int place = call_.op->schema.find(name_hash(argument));
  if (place < 0) fail("the derivative of {} names the argument {}, which it has not", call_.name, argument);
  return static_cast<size_t>(place);
}

bool Formula::is_none(std::string_view argument) const {
  const size_t i = place_of(argument);
  return call_.has_constant(i) && call_.constant(i).is_none();
}

const Constant& Formula::value_of(std::string_view argument) const {
  return call_.constant(place_of(argument));
}

std::vector<Term> Formula::gradients() {
  std::vector<Term> terms;
  for (Value* value : incoming_) terms.push_back({this, value});
  return terms;
}

Value* Formula::inside(Term term) {
  return term.value->node->home == &body_.graph ? term.value : capture_(term.value);
}

std::vector<Value*> Formula::inside(const std::vector<Term>& terms) {
  std::vector<Value*> values;
  values.reserve(terms.size());
  for (const Term& term : terms) values.push_back(inside(term));
  return values;
}

Node* Formula::add(std::string_view name, std::vector<Value*> given, Node* place) {
  const Operator* op = registry_.find(name);
  if (!op) fail("the derivative of {} calls {}, which has no record", call_.name, name);
  Graph& graph = place->owner();
  while (given.size() < op->schema.arguments.size()) {
    Node* constant = graph.create_constant(op->schema.arguments[given.size()].default_value);
    constant->move_after(place);
    place = constant;
    given.push_back(constant->output());
  }
  Node* node = graph.create_call(*op, given);
  node->scope = call_.scope;
  node->move_after(place);
  return node;
}

Node* Formula::add_number(std::string_view name, const std::vector<Value*>& given, Node* place) {
  const NumberOp* op = number_op(name);
  Node* node = place->owner().create(Kind::number, given);
  node->name = std::string(name);
  node->scope = call_.scope;
  node->add_output(op->type());
  node->move_after(place);
  return node;
}

std::vector<Term> Formula::calls(std::string_view op, const std::vector<Term>& arguments) {
  std::vector<Value*> given = inside(arguments);
  const Node* node = add(op, std::move(given), body_.results->previous);
  std::vector<Term> results;
  for (const auto& output : node->outputs) results.push_back({this, output.get()});
  return results;
}

Term Formula::call(std::string_view op, const std::vector<Term>& arguments, size_t result) {
  return calls(op, arguments)[result];
}

Term Formula::number(std::string_view op, const std::vector<Term>& arguments) {
  std::vector<Value*> given = inside(arguments);
  return {this, add_number(op, given, body_.results->previous)->output()};
}

Term Formula::constant(const Constant& value) {
  Node* node = body_.graph.create_constant(value);
  body_.append(node);
  return {this, node->output()};
}

Term Formula::list(const std::vector<Term>& terms, Type::Kind kind) {
  std::vector<Value*> given = inside(terms);
  Node* node = body_.graph.create(Kind::list_construct, given);
  body_.append(node);
  return {this, node->add_output(kind)};
}

Term Formula::forward_number(std::string_view op, const std::vector<Term>& arguments) {
  std::vector<Value*> given = values_of(arguments);
  behind_ = add_number(op, given, behind_);
  return {this, behind_->output()};
}

Term Formula::size_if_not_equal(Term tensor) {
  const Term size = size_of(tensor), of_result = size_of(result());
  return forward_number("aten::_size_if_not_equal", {size, of_result});
}

Term Formula::forward_constant(const Constant& value) {
  Node* node = call_.owner().create_constant(value);
  node->move_after(behind_);
  behind_ = node;
  return {this, node->output()};
}

std::vector<Term> Formula::replace_call(std::string_view op, const std::vector<Term>& arguments) {
  std::vector<Value*> given = values_of(arguments);
  Node* node = add(op, std::move(given), behind_);
  behind_ = node;
  std::vector<Term> made;
  for (const auto& output : node->outputs) made.push_back({this, output.get()});
  for (size_t i = 0; i < results_.size(); ++i) {
    made[i].value->type = results_[i]->type;
    made[i].value->name = results_[i]->name;
    results_[i]->replace_with(made[i].value);
    results_[i] = made[i].value;
  }
  return made;
}

void Formula::give(std::string_view argument, Term gradient) { give(place_of(argument), gradient); }

Term summed(Term gradient, Term size) {
  return gradient.formula->call("aten::_grad_sum_to_size", {gradient, size});
}
void pass_to_self(Formula& f) { f.give("self", f.gradient()); }
void no_gradient(Formula&) {}

const FormulaRow* formula_of(const Node& call) {
  static const std::unordered_map<std::string_view, const FormulaRow*> rows = [] {
    std::unordered_map<std::string_view, const FormulaRow*> rows;
    for (const auto& family :
         {arithmetic_formulas(), function_formulas(), activation_formulas(), product_formulas(),
          reduction_formulas(), geometry_formulas(), layer_formulas()})
      for (const FormulaRow& row : family) rows.emplace(row.op, &row);
    return rows;
  }();
  if (!call.op) return nullptr;
  const auto found = rows.find(call.op->name);
  if (found == rows.end() || has_wrong_constant(call)) return nullptr;
  return !found->second->applies || found->second->applies(call) ? found->second : nullptr;
}

}  // namespace metaprof::ir
