// Derivatives of arithmetic, of comparisons and of choices between tensors.

#include "step/compiled/autodiff/formula.h"

namespace metaprof::ir {
namespace {

struct BroadcastSizes {
  Term self, other;
};

BroadcastSizes sizes_of(Formula& f, std::string_view self = "self", std::string_view other = "other") {
  const Term first = f.size_if_not_equal(f.input(self));
  return {first, f.size_if_not_equal(f.input(other))};
}

void add(Formula& f) {
  const BroadcastSizes sizes = sizes_of(f);
  f.give("other", summed(f.gradient() * f.input("alpha"), sizes.other));
  f.give("self", summed(f.gradient(), sizes.self));
}

void subtract(Formula& f) {
  const BroadcastSizes sizes = sizes_of(f);
  f.give("other", summed(-f.gradient() * f.input("alpha"), sizes.other));
  f.give("self", summed(f.gradient(), sizes.self));
}

void subtract_from(Formula& f) {
  const BroadcastSizes sizes = sizes_of(f);
  f.give("self", summed(-f.gradient() * f.input("alpha"), sizes.self));
  f.give("other", summed(f.gradient(), sizes.other));
}

void multiply(Formula& f) {
  const BroadcastSizes sizes = sizes_of(f);
  f.give("self", summed(f.gradient() * f.input("other"), sizes.self));
  f.give("other", summed(f.gradient() * f.self(), sizes.other));
}

void give_quotient(Formula& f, const BroadcastSizes& sizes) {
  const Term other = f.input("other");
  f.give("self", summed(f.gradient() / other, sizes.self));
  f.give("other", summed(-f.gradient() * f.self() / (other * other), sizes.other));
}

void divide(Formula& f) { give_quotient(f, sizes_of(f)); }

Term zeros_like(Term term) { return term.formula->call("aten::zeros_like", {term}); }

void divide_rounded(Formula& f) {
  const BroadcastSizes sizes = sizes_of(f);
  if (f.is_none("rounding_mode")) return give_quotient(f, sizes);
  f.give("self", zeros_like(f.self()));
  f.give("other", zeros_like(f.input("other")));
}

bool has_constant_mode(const Node& call) { return call.has_constant(2); }

void power(Formula& f) {
  const BroadcastSizes sizes = sizes_of(f, "self", "exponent");
  const Term exponent = f.input("exponent");
  const Term is_zero = f.call("aten::eq.Scalar", {exponent, f.constant(0.0)});
  const Term zeros = zeros_like(f.self());
  const Term slope = f.gradient() * exponent * f.call("aten::pow.Tensor_Tensor", {f.self(), exponent - 1});
  f.give("self", summed(f.call("aten::where.self", {is_zero, zeros, slope}), sizes.self));
  const Term logarithm = f.call("aten::log", {f.self()});
  f.give("exponent",
         summed(f.gradient() * f.call("aten::pow.Tensor_Tensor", {f.self(), exponent}) * logarithm,
                sizes.other));
}

void power_of_number(Formula& f) {
  const double exponent = f.value_of("exponent").real();
  if (exponent == 0) return f.give("self", zeros_like(f.self()));
  const Term scaled = f.gradient() * f.input("exponent");
  f.give("self", scaled * f.call("aten::pow.Tensor_Scalar", {f.self(), f.constant(exponent - 1)}));
}

bool has_constant_exponent(const Node& call) {
  return call.has_constant(1) && call.constant(1).is_number() &&
         call.constant(1).kind() != Constant::Kind::complex;
}

// The larger or the smaller of two: the gradient goes where the result comes from.
void give_chosen(Formula& f, std::string_view comparison, Term self_size, Term other_size) {
  const Term other = f.input("other");
  const Term from_self = f.call("aten::type_as", {f.call(comparison, {f.self(), other}), f.gradient()});
  f.give("self", summed(f.gradient() * from_self, self_size));
  const Term from_other = f.call("aten::type_as", {f.call(comparison, {other, f.self()}), f.gradient()});
  f.give("other", summed(f.gradient() * from_other, other_size));
}

void maximum(Formula& f) {
  const BroadcastSizes sizes = sizes_of(f);
  give_chosen(f, "aten::gt.Tensor", sizes.self, sizes.other);
}

void minimum(Formula& f) {
  give_chosen(f, "aten::lt.Tensor", f.number("aten::size", {f.self()}),
              f.number("aten::size", {f.input("other")}));
}

void where(Formula& f) {
  const BroadcastSizes sizes = sizes_of(f);
  const Term condition = f.input("condition");
  f.give("self", summed(f.gradient() * f.call("aten::type_as", {condition, f.gradient()}), sizes.self));
  const Term not_condition = f.call("aten::bitwise_not", {condition});
  f.give("other", summed(f.gradient() * f.call("aten::type_as", {not_condition, f.gradient()}), sizes.other));
}

void interpolate_by_number(Formula& f) {
  const BroadcastSizes sizes = sizes_of(f, "self", "end");
  const double weight = f.value_of("weight").real();
  f.give("self", summed(f.gradient() * (1 - weight), sizes.self));
  f.give("end", summed(f.gradient() * weight, sizes.other));
}

bool has_constant_weight(const Node& call) { return call.has_constant(2) && call.constant(2).is_number(); }

void interpolate(Formula& f) {
  const BroadcastSizes sizes = sizes_of(f, "self", "end");
  const Term weight_size = f.size_if_not_equal(f.input("weight"));
  f.give("self", summed(f.gradient() * (1 - f.input("weight")), sizes.self));
  f.give("end", summed(f.gradient() * f.input("weight"), sizes.other));
  f.give("weight", summed(f.gradient() * (f.input("end") - f.self()), weight_size));
}

void add_product(Formula& f) {
  const Term self_size = f.size_if_not_equal(f.self());
  const Term first_size = f.size_if_not_equal(f.input("tensor1"));
  const Term second_size = f.size_if_not_equal(f.input("tensor2"));
  const Term scaled = f.gradient() * f.input("value");
  f.give("tensor1", summed(scaled * f.input("tensor2"), first_size));
  f.give("tensor2", summed(scaled * f.input("tensor1"), second_size));
  f.give("self", summed(f.gradient(), self_size));
}

void multiply_by_number(Formula& f) { f.give("self", f.gradient() * f.input("other")); }
void divide_by_number(Formula& f) { f.give("self", f.gradient() / f.input("other")); }
void subtract_from_number(Formula& f) { f.give("self", -f.gradient() * f.input("alpha")); }

void divide_by_number_rounded(Formula& f) {
  if (f.is_none("rounding_mode")) return divide_by_number(f);
  f.give("self", zeros_like(f.self()));
}

// A gradient where the argument lies between bounds, of which each may be missing.
void clamp_between(Formula& f, std::string_view from_below, std::string_view from_above) {
  Term mask;
  if (!f.is_none("min")) mask = f.call(from_below, {f.self(), f.input("min")});
  if (!f.is_none("max")) {
    const Term below = f.call(from_above, {f.self(), f.input("max")});
    mask = mask.value ? mask * below : below;
  }
  if (!mask.value) return f.give("self", f.gradient());
  f.give("self", f.gradient() * f.call("aten::type_as", {mask, f.self()}));
}

void clamp(Formula& f) { clamp_between(f, "aten::ge.Scalar", "aten::le.Scalar"); }
void clamp_by_tensors(Formula& f) { clamp_between(f, "aten::ge.Tensor", "aten::le.Tensor"); }

constexpr FormulaRow kArithmetic[] = {
    {"aten::add.Tensor", add},
    {"aten::sub.Tensor", subtract},
    {"aten::rsub.Tensor", subtract_from},
    {"aten::mul.Tensor", multiply},
    {"aten::div.Tensor", divide},
    {"aten::div.Tensor_mode", divide_rounded, has_constant_mode},
    {"aten::pow.Tensor_Tensor", power},
    {"aten::pow.Tensor_Scalar", power_of_number, has_constant_exponent},
    {"aten::max.other", maximum},
    {"aten::min.other", minimum},
    {"aten::where.self", where},
    {"aten::lerp.Scalar", interpolate_by_number, has_constant_weight},
    {"aten::lerp.Tensor", interpolate},
    {"aten::addcmul", add_product},
    {"aten::add.Scalar", pass_to_self},
    {"aten::sub.Scalar", pass_to_self},
    {"aten::mul.Scalar", multiply_by_number},
    {"aten::div.Scalar", divide_by_number},
    {"aten::div.Scalar_mode", divide_by_number_rounded, has_constant_mode},
    {"aten::rsub.Scalar", subtract_from_number},
    {"aten::fmod.Scalar", pass_to_self},
    {"aten::remainder.Scalar", pass_to_self},
    {"aten::clamp", clamp},
    {"aten::clamp.Tensor", clamp_by_tensors},
    {"aten::lt.Scalar", no_gradient},
    {"aten::le.Scalar", no_gradient},
    {"aten::gt.Scalar", no_gradient},
    {"aten::ge.Scalar", no_gradient},
    {"aten::eq.Scalar", no_gradient},
    {"aten::ne.Scalar", no_gradient},
};

}  // namespace

std::span<const FormulaRow> arithmetic_formulas() { return kArithmetic; }

}  // namespace metaprof::ir
