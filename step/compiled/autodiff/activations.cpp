// Derivatives of activations.

#include "step/compiled/autodiff/formula.h"

namespace metaprof::ir {
namespace {

Term compare(std::string_view comparison, Term term, const Constant& number) {
  return term.formula->call(comparison, {term, term.formula->constant(number)});
}
Term both(Term a, Term b) { return a.formula->call("aten::__and__.Tensor", {a, b}); }
Term either(Term a, Term b) { return a.formula->call("aten::__or__.Tensor", {a, b}); }
Term like(Term term, Term other) { return term.formula->call("aten::type_as", {term, other}); }

void sigmoid(Formula& f) { f.give("self", (1 - f.result()) * f.result() * f.gradient()); }

void relu(Formula& f) {
  f.give("self", f.gradient() * like(compare("aten::gt.Scalar", f.result(), 0), f.result()));
}

void relu6(Formula& f) {
  f.give("self", f.gradient() * both(compare("aten::gt.Scalar", f.result(), 0),
                                     compare("aten::lt.Scalar", f.result(), 6.0)));
}

void leaky_relu(Formula& f) {
  const Term positive = compare("aten::gt.Scalar", f.self(), 0);
  const Term slope = f.call("aten::where.Scalar", {positive, f.constant(1.0), f.input("negative_slope")});
  f.give("self", f.gradient() * like(slope, f.result()));
}

void gelu(Formula& f) {
  f.give("self", f.call("aten::gelu_backward", {f.gradient(), f.self(), f.input("approximate")}));
}

void silu(Formula& f) {
  const Term gate = f.call("aten::sigmoid", {f.self()});
  f.give("self", f.gradient() * (gate * (f.self() * (1 - gate) + 1)));
}

void hard_swish(Formula& f) {
  const Term linear = like(compare("aten::ge.Scalar", f.self(), 3.0), f.result());
  const Term bent =
      both(compare("aten::gt.Scalar", f.self(), -3.0), compare("aten::lt.Scalar", f.self(), 3.0));
  f.give("self", f.gradient() * f.call("aten::where.self", {bent, f.self() / 3.0 + 0.5, linear}));
}

void hard_sigmoid(Formula& f) {
  const Term bent =
      both(compare("aten::gt.Scalar", f.self(), -3.0), compare("aten::lt.Scalar", f.self(), 3.0));
  const Term slope = f.gradient() * (1.0 / 6.0);
  f.give("self", f.call("aten::where.self", {bent, slope, like(bent, f.self())}));
}

bool has_constant_bound(const Node& call) { return call.has_constant(1) && call.constant(1).is_number(); }

void hard_shrink(Formula& f) {
  const double bound = f.value_of("lambd").real();
  f.give("self", f.gradient() * either(compare("aten::gt.Scalar", f.self(), bound),
                                       compare("aten::lt.Scalar", f.self(), -bound)));
}

void hard_tanh(Formula& f) {
  const Term above = f.call("aten::ge.Scalar", {f.self(), f.input("min_val")});
  f.give("self", f.gradient() * (above * f.call("aten::le.Scalar", {f.self(), f.input("max_val")})));
}

void softplus(Formula& f) {
  const Term power = f.call("aten::exp", {f.result() * f.input("beta")});
  const Term linear = f.call("aten::gt.Scalar", {f.result() * f.input("beta"), f.input("threshold")});
  f.give("self", f.call("aten::where.self", {linear, f.gradient(), f.gradient() * (power - 1.0) / power}));
}

void threshold(Formula& f) {
  const Term above = like(f.call("aten::ge.Scalar", {f.self(), f.input("threshold")}), f.self());
  f.give("self", f.gradient() * above);
}

constexpr FormulaRow kActivations[] = {
    {"aten::sigmoid", sigmoid},
    {"aten::relu", relu},
    {"aten::relu6", relu6},
    {"aten::leaky_relu", leaky_relu},
    {"aten::gelu", gelu},
    {"aten::silu", silu},
    {"aten::hardswish", hard_swish},
    {"aten::hardsigmoid", hard_sigmoid},
    {"aten::hardshrink", hard_shrink, has_constant_bound},
    {"aten::hardtanh", hard_tanh},
    {"aten::softplus", softplus},
    {"aten::threshold", threshold},
};

}  // namespace

std::span<const FormulaRow> activation_formulas() { return kActivations; }

}  // namespace metaprof::ir
