// Powers, and functions of two tensors that are made of powers, exponentials and logarithms.

#include <cmath>
#include <numbers>

#include "meta/ops/pointwise/family.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/elementwise.h"

namespace metaprof {
namespace {

// --- pow (FunctionsManual.cpp, pow_backward, pow_backward_self, pow_backward_exponent)

// The least integer wraps around, as it does in the framework.
Value less_one(const Value& exponent) {
  if (exponent.kind() == Value::Kind::integer) return Value(int64_t(uint64_t(exponent.integer()) - 1));
  return Value(exponent.real() - 1);
}

Tensor power_of_number_gradient(Backward& b) {
  const Value& exponent = b["exponent"];
  if (exponent.real() == 0) return zeros_like(b("self"));
  return real_if(b.grad() * conj(exponent * pow(b("self"), less_one(exponent))), b.dtype("self"));
}

Tensor base_gradient(Backward& b) {
  const Tensor lower = b("exponent") - 1;
  const Tensor power = call<"pow.Tensor_Tensor">(b.session, b("self"), lower);
  const Tensor slope = conj(b("exponent") * power);
  const Tensor gradient = b.grad() * slope;
  const Tensor zero = scalar_like(gradient, 0.0);
  const Tensor constant = eq(b("exponent"), 0.0);
  return where(constant, zero, gradient);
}

// Where 0 is raised to a power that is not negative the result does not change with the exponent.
Tensor zero_base(Backward& b) {
  const Tensor not_negative = ge(b("exponent"), 0);
  const Tensor zero = eq(b("self"), 0);
  return logical_and(zero, not_negative);
}

Tensor exponent_gradient(Backward& b) {
  const Tensor constant = zero_base(b);
  const Tensor cast = to(b("self"), result_type({&b("self"), &b("exponent")}));
  const Tensor logarithm = log(cast);
  const Tensor slope = conj(b("result") * logarithm);
  const Tensor zero = scalar_like(slope, 0.0);
  return b.grad() * where(constant, zero, slope);
}

Tensor exponent_of_number_gradient(Backward& b) {
  const double base = b.real("self");
  if (base != 0) return b.grad() * conj(b("result") * Value(std::log(base)));
  const Tensor constant = ge(b("exponent"), 0);
  const Tensor slope = b("result") * Value(std::log(base));
  const Tensor zero = scalar_like(slope, 0.0);
  return b.grad() * where(constant, zero, slope);
}

constexpr Op kPowerOfNumber = only_functional(function_of_one(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", "self^exponent", promoted_with_numbers_meta,
    {{{"self"}, {"self"}, [](Backward& b) { return power_of_number_gradient(b); }}},
    {"f32[2,3] 3.0", "f32[2] 2", "i64[2] 2"}));

constexpr Op kPowerOfTensor = node_named(
    "PowBackward1",
    only_functional(function_of_two(
        "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", "self^exponent", promoted_meta,
        {{{"exponent"}, {"self", "exponent", "result"}, [](Backward& b) { return exponent_gradient(b); }},
         {{"self"}, {"self", "exponent"}, [](Backward& b) { return base_gradient(b); }}})));

// ATen/native/Pow.cpp: the base becomes a tensor on the exponent's device.
void power_of_number_cuda(Call& c) {
  c.allocate(0);
  if (c.real("self") == 1) return;
  const Tensor base = c.temporary({}, c["self"].kind() == Value::Kind::integer ? DType::i64 : DType::f64);
}

constexpr Op kPow[] = {
    fp32_under_autocast(kPowerOfNumber),
    in_place_as("pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)", kPowerOfNumber),
    fp32_under_autocast(kPowerOfTensor),
    in_place_as("pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)", kPowerOfTensor),
    fp32_under_autocast(
        on_cuda(power_of_number_cuda,
                node_named("PowBackward2", only_functional(function_of_two(
                                               "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
                                               "a number to a power", promoted_with_numbers_meta,
                                               {{{"exponent"},
                                                 {"exponent", "result"},
                                                 [](Backward& b) { return exponent_of_number_gradient(b); }}},
                                               {"2.0 f32[2,3]"}))))),
};

// In double precision, complex if an operand is.
DType double_type(const Value& a, const Value& b) {
  const Value operands[] = {a, b};
  return is_complex(result_type(operands)) ? DType::c128 : DType::f64;
}

void float_power_body(Call& c) {
  const DType dtype = double_type(c["self"], c["exponent"]);
  const Tensor exponent = to(c.tensor("exponent"), dtype);
  const Tensor self = to(c.tensor("self"), dtype);
  c.result(call<"pow.Tensor_Tensor">(c.session, self, exponent));
}

constexpr Op kFloatPower[] = {
    composite_of("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
                 "self^exponent in double precision", float_power_body, {"f32[2,3] f32[3]"}),
    composite_of("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
                 "self^exponent in double precision",
                 [](Call& c) {
                   const DType dtype = double_type(c["self"], c["exponent"]);
                   c.result(pow(to(c.tensor("self"), dtype), c["exponent"]));
                 },
                 {"f32[2,3] 2"}),
    composite_of("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
                 "self^exponent in double precision",
                 [](Call& c) {
                   const DType dtype = double_type(c["self"], c["exponent"]);
                   const Value base = is_complex(dtype) ? c["self"] : Value(c.real("self"));
                   const Tensor exponent = to(c.tensor("exponent"), dtype);
                   c.result(call<"pow.Scalar">(c.session, base, exponent));
                 },
                 {"2 f32[2,3]"})};

// --- exponentials and logarithms of two

constexpr Op kLogSums[] = {
    only_functional(function_of_two(
        "logaddexp(Tensor self, Tensor other) -> Tensor", "ln(e^self + e^other)", promoted_meta,
        {{{"other"},
          {"self", "other"},
          [](Backward& b) { return b.grad() / conj(1 + exp(b("self") - b("other"))); }},
         {{"self"},
          {"self", "other"},
          [](Backward& b) { return b.grad() / conj(1 + exp(b("other") - b("self"))); }}})),
    only_functional(function_of_two("logaddexp2(Tensor self, Tensor other) -> Tensor",
                                    "log₂(2^self + 2^other)", promoted_meta,
                                    {{{"other"},
                                      {"self", "other"},
                                      [](Backward& b) {
                                        const Tensor difference = b("self") - b("other");
                                        const Tensor power = call<"pow.Scalar">(b.session, 2, difference);
                                        return b.grad() / (1 + power);
                                      }},
                                     {{"self"}, {"self", "other"}, [](Backward& b) {
                                        const Tensor difference = b("other") - b("self");
                                        const Tensor power = call<"pow.Scalar">(b.session, 2, difference);
                                        return b.grad() / (1 + power);
                                      }}}))};

// x·log(y) is 0 where x is 0, and so is its slope.
template <FixedString name>
Tensor first_factor_gradient(Backward& b, double border) {
  const Tensor product = call<name>(b.session, b.grad(), b("other"));
  const Tensor outside = le(b("other"), border);
  const Tensor zero = eq(b("self"), 0.0);
  const Tensor flat = call<"bitwise_and.Tensor">(b.session, zero, outside);
  return masked_fill(product, flat, 0.0);
}
template <FixedString name>
Tensor first_factor_of_number_gradient(Backward& b, double border) {
  Tensor product = call<name>(b.session, b.grad(), b["other"]);
  if (b.real("other") > border) return product;
  return masked_fill(product, eq(b("self"), 0.0), 0.0);
}

constexpr Op kXlogy[] = {
    function_of_two(
        "xlogy.Tensor(Tensor self, Tensor other) -> Tensor", "self · ln other", promoted_floating_meta,
        {{{"other"}, {"self", "other"}, [](Backward& b) { return b.grad() * b("self") / b("other"); }},
         {{"self"},
          {"self", "other"},
          [](Backward& b) { return first_factor_gradient<"xlogy.Tensor">(b, 0.0); }}}),
    node_named("XlogyBackward1",
               only_functional(function_of_two(
                   "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", "self · ln other",
                   promoted_floating_meta,
                   {{{"other"}, {"other"}, [](Backward& b) { return b.grad() * b["self"] / b("other"); }}},
                   {"2 f32[2,3]"}))),
    node_named("XlogyBackward2",
               function_of_two("xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", "self · ln other",
                               promoted_floating_meta,
                               {{{"self"},
                                 {"self"},
                                 [](Backward& b) {
                                   return first_factor_of_number_gradient<"xlogy.Scalar_Other">(b, 0.0);
                                 }}},
                               {"f32[2,3] 2"})),
    only_functional(function_of_two("special_xlog1py(Tensor self, Tensor other) -> Tensor",
                                    "self · ln(1 + other)", promoted_floating_meta,
                                    {{{"other"},
                                      {"self", "other"},
                                      [](Backward& b) {
                                        const Tensor shifted = b("other") + 1;
                                        return b.grad() * b("self") / shifted;
                                      }},
                                     {{"self"}, {"self", "other"}, [](Backward& b) {
                                        return first_factor_gradient<"special_xlog1py">(b, -1.0);
                                      }}}))};

// ldexp multiplies by a power of two that it makes first; from 2.15 on whole exponents are added (recorded:
// `opinfo/ldexp/9`).
template <bool adds_exponents>
void ldexp_kernel(Call& c) {
  if (adds_exponents && is_integral(c.tensor("other").dtype(), false)) return c.allocate(0);
  const Tensor power = call<"pow.Scalar">(c.session, 2.0, c.tensor("other"));
  c.allocate(0);
}

void ldexp_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &other = c.tensor("other");
  // 2.0^other is floating, and keeps the dimensions of other.
  const Value power_operands[] = {Value(2.0), Value(other)};
  const DType power = result_type(power_operands);
  DType dtype = result_type({&self, &other});
  if (!is_floating(dtype) && !is_complex(dtype)) dtype = power;
  elementwise(c, {&self, &other}, dtype);
}

template <bool adds_exponents>
constexpr auto ldexps(const FrameworkRange& versions) {
  const Op of_tensor =
      on_cuda(ldexp_kernel<adds_exponents>,
              only_functional(function_of_two(
                  "ldexp.Tensor(Tensor self, Tensor other) -> Tensor", "self · 2^other", ldexp_meta,
                  {{{"other"},
                    {"result"},
                    [](Backward& b) { return b.grad() * conj(b("result")) * std::numbers::ln2; }},
                   {{"self"}, {"other"}, [](Backward& b) {
                      return b.grad() * call<"pow.Scalar">(b.session, adds_exponents ? Value(2.0) : Value(2),
                                                           b("other"));
                    }}})));
  std::array ops = {of_tensor, in_place_as("ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)", of_tensor)};
  for (Op& op : ops) op.facts.versions = versions;
  return ops;
}
constexpr auto kLdexp = ldexps<false>({.before = {2, 15}}), kLdexpSince15 = ldexps<true>({.since = {2, 15}});

}  // namespace

Tables power_operators() {
  static constexpr Records tables[] = {kPow, kFloatPower, kLogSums, kXlogy, kLdexp, kLdexpSince15};
  return tables;
}

}  // namespace metaprof
