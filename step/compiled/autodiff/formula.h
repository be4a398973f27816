#pragma once
// What a derivative is written in. A formula adds to two graphs at once: to the forward, where it stands behind the
// call, and to the gradient. It is written as mathematics is:
//
//   void tanh(Formula& f) { f.give("self", f.gradient() * (1 - f.result() * f.result())); }
//
// Values of the forward that the gradient reads are captured. So a formula decides what is saved.

#include <functional>
#include <string_view>
#include <vector>

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

class Formula;

/// A value of the forward graph or of the gradient, in a formula.
struct Term {
  Formula* formula = nullptr;
  Value* value = nullptr;

  bool is_tensor() const { return value->type.is_tensor() || value->type.is_tensors(); }
};

// Calls in the gradient. A number beside a tensor is an argument of the tensor's operator.
Term operator*(Term a, Term b);
Term operator*(Term a, const Constant& b);
Term operator*(const Constant& a, Term b);
Term operator+(Term a, Term b);
Term operator+(Term a, const Constant& b);
Term operator-(Term a, Term b);
Term operator-(Term a, const Constant& b);
Term operator-(const Constant& a, Term b);
Term operator-(Term a);
Term operator/(Term a, Term b);
Term operator/(Term a, const Constant& b);

class Formula {
 public:
  /// `capture`: the value of the gradient's graph for one of the forward's.
  using Capture = std::function<Value*(Value*)>;
  /// `call` stands in the forward; `body` is the block of the gradient that is written. `incoming`: gradients of the
  /// call's results.
  Formula(Node& call, Block& body, std::vector<Value*> incoming, const Registry& registry, Capture capture);

  // What is there.
  Term self() { return input(0); }
  Term input(size_t i) { return {this, call_.input(i)}; }
  Term input(std::string_view argument) { return input(place_of(argument)); }
  bool is_none(std::string_view argument) const;
  /// The argument is a constant: its value.
  const Constant& value_of(std::string_view argument) const;
  Term result(size_t i = 0) { return {this, results_[i]}; }
  Term gradient(size_t i = 0) { return {this, incoming_[i]}; }
  std::vector<Term> gradients();

  // Calls in the gradient. Arguments that are left out have their defaults.
  Term call(std::string_view op, const std::vector<Term>& arguments, size_t result = 0);
  std::vector<Term> calls(std::string_view op, const std::vector<Term>& arguments);
  Term number(std::string_view op, const std::vector<Term>& arguments);
  Term constant(const Constant& value);
  Term list(const std::vector<Term>& terms, Type::Kind kind);

  // Behind the call in the forward.
  Term size_of(Term tensor) { return forward_number("aten::size", {tensor}); }
  /// The argument's sizes if they are not the result's, else None: what its gradient is summed to.
  Term size_if_not_equal(Term tensor);
  Term forward_number(std::string_view op, const std::vector<Term>& arguments);
  Term forward_constant(const Constant& value);
  /// Another call, whose first results take the place of the call's.
  std::vector<Term> replace_call(std::string_view op, const std::vector<Term>& arguments);

  /// The gradient of an argument.
  void give(std::string_view argument, Term gradient);
  void give(size_t argument, Term gradient) { given_.emplace_back(argument, inside(gradient)); }

  const std::vector<std::pair<size_t, Value*>>& given() const { return given_; }
  /// What the call's results have become.
  const std::vector<Value*>& results() const { return results_; }

 private:
  size_t place_of(std::string_view argument) const;
  Value* inside(Term term);
  std::vector<Value*> inside(const std::vector<Term>& terms);
  Node* add(std::string_view op, std::vector<Value*> given, Node* place);
  Node* add_number(std::string_view op, const std::vector<Value*>& given, Node* place);

  Node& call_;
  Block& body_;
  const std::vector<Value*> incoming_;
  const Registry& registry_;
  const Capture capture_;
  Node* behind_;  // the last that stands behind the call
  std::vector<Value*> results_;
  std::vector<std::pair<size_t, Value*>> given_;
};

// What formulas have in common.

/// What flows back to an argument that was broadcast, summed to its sizes; `size` None: as it is.
Term summed(Term gradient, Term size);
/// The gradient of the result is that of `self`.
void pass_to_self(Formula& f);
void no_gradient(Formula& f);

struct FormulaRow {
  std::string_view op;  ///< "aten::tanh"
  void (*write)(Formula&);
  bool (*applies)(const Node& call) = nullptr;  ///< null: always
  /// The framework's formula calls functions of its language in the backward.
  bool calls_functions = false;
};

inline constexpr bool kCallsFunctions = true;

/// The formula of a call; null: it is not differentiated inside a graph.
const FormulaRow* formula_of(const Node& call);

// The formulas by family, each in a file.
std::span<const FormulaRow> arithmetic_formulas();
std::span<const FormulaRow> function_formulas();
std::span<const FormulaRow> activation_formulas();
std::span<const FormulaRow> product_formulas();
std::span<const FormulaRow> reduction_formulas();
std::span<const FormulaRow> geometry_formulas();
std::span<const FormulaRow> layer_formulas();

}  // namespace metaprof::ir
