// Comparisons, logic and bits.

#include <limits>

#include "meta/ops/pointwise/family.h"
#include "meta/ops/rules/elementwise.h"

namespace metaprof {
namespace {

// eq, ne, lt …: not differentiable; in place they write 0 or 1 to self, whose gradient is zeros
// (derivatives.yaml, eq_).
struct Comparison {
  std::string_view tensor, scalar, in_place_tensor, in_place_scalar, summary, node0, node1;
};

constexpr Comparison kComparisons[] = {
    {"eq.Tensor(Tensor self, Tensor other) -> Tensor", "eq.Scalar(Tensor self, Scalar other) -> Tensor",
     "eq_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
     "eq_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "self = other", "EqBackward1", "EqBackward0"},
    {"ne.Tensor(Tensor self, Tensor other) -> Tensor", "ne.Scalar(Tensor self, Scalar other) -> Tensor",
     "ne_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
     "ne_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "self ≠ other", "NeBackward1", "NeBackward0"},
    {"lt.Tensor(Tensor self, Tensor other) -> Tensor", "lt.Scalar(Tensor self, Scalar other) -> Tensor",
     "lt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
     "lt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "self < other", "LtBackward1", "LtBackward0"},
    {"le.Tensor(Tensor self, Tensor other) -> Tensor", "le.Scalar(Tensor self, Scalar other) -> Tensor",
     "le_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
     "le_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "self ≤ other", "LeBackward1", "LeBackward0"},
    {"gt.Tensor(Tensor self, Tensor other) -> Tensor", "gt.Scalar(Tensor self, Scalar other) -> Tensor",
     "gt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
     "gt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "self > other", "GtBackward1", "GtBackward0"},
    {"ge.Tensor(Tensor self, Tensor other) -> Tensor", "ge.Scalar(Tensor self, Scalar other) -> Tensor",
     "ge_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
     "ge_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "self ≥ other", "GeBackward1", "GeBackward0"},
};

Tensor zeros_of(Backward& b, Name argument) {
  const TensorImpl& shape = *b.shape(argument);
  return call<"zeros">(b.session, shape.sizes, shape.dtype, Value(), shape.device);
}

constexpr std::array<Op, 4> comparison(const Comparison& c) {
  const Derivative self_row = {{"self"}, {}, [](Backward& b) { return zeros_of(b, "self"); }};
  const Derivative other_row = {{"other"}, {}, [](Backward& b) { return zeros_of(b, "other"); }};
  return {
      only_functional(function_of_two(c.tensor, c.summary, boolean_meta, not_differentiable)),
      only_functional(function_of_two(c.scalar, c.summary, boolean_meta, not_differentiable, {"f32[2,3] 1"})),
      node_named(c.node0, only_functional(function_of_two(c.in_place_tensor, c.summary, self_meta,
                                                          {self_row, other_row}))),
      node_named(c.node1, only_functional(function_of_two(c.in_place_scalar, c.summary, self_meta, {self_row},
                                                          {"f32[2,3] 1"})))};
}

constexpr auto kComparisonRecords =
    joined(comparison(kComparisons[0]), comparison(kComparisons[1]), comparison(kComparisons[2]),
           comparison(kComparisons[3]), comparison(kComparisons[4]), comparison(kComparisons[5]));

constexpr Op kLogic[] = {
    function_of_two("logical_and(Tensor self, Tensor other) -> Tensor", "self ∧ other", boolean_meta,
                    not_differentiable),
    function_of_two("logical_or(Tensor self, Tensor other) -> Tensor", "self ∨ other", boolean_meta,
                    not_differentiable),
    function_of_two("logical_xor(Tensor self, Tensor other) -> Tensor", "self ⊻ other", boolean_meta,
                    not_differentiable),
    function_of_one("logical_not(Tensor self) -> Tensor", "¬self", boolean_meta, not_differentiable)};

constexpr Op bits_of_one(std::string_view schema, std::string_view summary) {
  return function_of_one(schema, summary, same_dtype_meta, not_differentiable, {"i64[2,3]", "b8[2]"});
}
constexpr Op bits_of_two(std::string_view schema, std::string_view summary) {
  return function_of_two(schema, summary, promoted_meta, not_differentiable, {"i64[2,3] i64[3]"});
}
constexpr Op bits_with_number(std::string_view schema, std::string_view summary) {
  return function_of_two(schema, summary, promoted_with_numbers_meta, not_differentiable, {"i64[2,3] 1"});
}

constexpr Op kBits[] = {
    bits_of_one("bitwise_not(Tensor self) -> Tensor", "bits of self inverted"),
    bits_of_two("bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", "self & other"),
    bits_with_number("bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor", "self & other"),
    bits_of_two("bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", "self | other"),
    bits_with_number("bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor", "self | other"),
    bits_of_two("bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", "self ^ other"),
    bits_with_number("bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor", "self ^ other"),
    bits_of_two("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", "self << other"),
    bits_with_number("bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
                     "self << other"),
    bits_of_two("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", "self >> other"),
    bits_with_number("bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
                     "self >> other"),
    bits_of_two("gcd(Tensor self, Tensor other) -> Tensor", "greatest common divisor"),
    bits_of_two("lcm(Tensor self, Tensor other) -> Tensor", "least common multiple")};

// Python's operators &, |, ^ on tensors: other names of the same.
template <FixedString name>
constexpr Op python_operator(std::string_view schema, std::string_view summary) {
  return composite_of(schema, summary,
                      [](Call& c) { c.result(call<name>(c.session, c.arguments[0], c.arguments[1])); },
                      {"b8[2] b8[2]"});
}

constexpr Op kPythonOperators[] = {
    python_operator<"bitwise_and.Tensor">("__and__.Tensor(Tensor self, Tensor other) -> Tensor",
                                          "self & other"),
    python_operator<"bitwise_or.Tensor">("__or__.Tensor(Tensor self, Tensor other) -> Tensor",
                                         "self | other"),
    python_operator<"bitwise_xor.Tensor">("__xor__.Tensor(Tensor self, Tensor other) -> Tensor",
                                          "self ^ other"),
    python_operator<"bitwise_and_.Tensor">("__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                                           "self := self & other"),
    python_operator<"bitwise_or_.Tensor">("__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                                          "self := self | other"),
    python_operator<"bitwise_xor_.Tensor">("__ixor__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                                           "self := self ^ other")};

constexpr Op predicate(std::string_view schema, std::string_view summary) {
  return only_functional(function_of_one(schema, summary, boolean_meta, not_differentiable));
}

// ATen/native/TensorCompare.cpp, isfinite: x = x and |x| ≠ ∞; the right side first. Of complex numbers both parts.
void isfinite_body(Call& c) {
  const Tensor& self = c.tensor("self");
  if (is_complex(self.dtype())) {
    const Tensor finite = call<"isfinite">(c.session, real(self));
    const Tensor imaginary = call<"isfinite">(c.session, call<"imag">(c.session, self));
    return c.result(call<"__iand__.Tensor">(c.session, finite, imaginary));
  }
  if (is_integral(self.dtype(), true)) return c.result(call<"ones_like">(c.session, self, DType::b8));
  const Tensor magnitude = abs(self);
  const Tensor bounded = ne(magnitude, std::numeric_limits<double>::infinity());
  const Tensor number = eq(self, self);
  c.result(number * bounded);
}

// ATen/native/TensorCompare.cpp, isclose.
void isclose_body(Call& c) {
  const Tensor &self = c.tensor("self"), &other = c.tensor("other");
  Tensor close = eq(self, other);
  if (c.boolean("equal_nan") && (is_floating(self.dtype()) || is_complex(self.dtype()))) {
    const Tensor self_nan = isnan(self);
    const Tensor other_nan = isnan(other);
    const Tensor both = call<"__iand__.Tensor">(c.session, self_nan, other_nan);
    close = call<"__ior__.Tensor">(c.session, close, both);
  }
  if (c.real("rtol") == 0 && c.real("atol") == 0) return c.result(close);
  const Tensor cast = is_integral(other.dtype(), true) ? to(other, kDefaultDType) : other;
  const Tensor allowed = c.real("atol") + abs(c.real("rtol") * cast);
  const Tensor actual = abs(self - cast);
  const Tensor finite = call<"isfinite">(c.session, actual);
  const Tensor near = le(actual, allowed);
  const Tensor acceptable = call<"__iand__.Tensor">(c.session, finite, near);
  close = call<"__ior__.Tensor">(c.session, close, acceptable);
  c.result(close);
}

void isreal_body(Call& c) {
  const Tensor& self = c.tensor("self");
  if (!is_complex(self.dtype()))
    return c.result(Tensor(
        call<"ones_like">(c.session, self, DType::b8, Value(), Value(), Value(), MemoryFormat::preserve)));
  c.result(eq(call<"imag">(c.session, self), 0));
}

constexpr Op kPredicates[] = {
    predicate("isnan(Tensor self) -> Tensor", "self is no number"),
    on_cuda(
        [](Call& c) {
          const Tensor& self = c.tensor("self");
          if (is_integral(self.dtype(), true)) return c.allocate(0);
          if (is_complex(self.dtype())) {  // one part or the other
            c.adopt(0, call<"isinf">(c.session, real(self)));
            const Tensor imaginary = call<"isinf">(c.session, call<"imag">(c.session, self));
            return;
          }
          const Tensor magnitude = abs(self);
          c.allocate(0);
        },
        predicate("isinf(Tensor self) -> Tensor", "|self| = ∞")),
    predicate("isposinf(Tensor self) -> Tensor", "self = ∞"),
    predicate("isneginf(Tensor self) -> Tensor", "self = −∞"),
    predicate("signbit(Tensor self) -> Tensor", "self < 0"),
    composite_of("isfinite(Tensor self) -> Tensor", "|self| < ∞", isfinite_body, {"f32[2,3]", "c64[2,3]"}),
    composite_of("isreal(Tensor self) -> Tensor", "self has no imaginary part", isreal_body, {"f32[2,3]"}),
    composite_of("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
                 "equal_nan=False) -> Tensor",
                 "|self − other| ≤ atol + rtol·|other|", isclose_body, {"f32[2,3] f32[2,3]"})};

}  // namespace

Tables comparison_operators() {
  static constexpr Records tables[] = {kComparisonRecords, kLogic, kBits, kPythonOperators, kPredicates};
  return tables;
}

}  // namespace metaprof
