// Arithmetic on two tensors, or on a tensor and a number.

#include "meta/op/versions.h"
#include "meta/ops/pointwise/family.h"
#include "meta/ops/pointwise/ties.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

// FunctionsManual.cpp, mul_tensor_backward and div_tensor_self_backward: of a real factor the real part.
Tensor times(Backward& b, Name factor, Name of) { return real_if(b.grad() * conj(b(factor)), b.dtype(of)); }

constexpr Derivative plus(Name of) { return {{of}, {}, gradient_itself}; }

void sum_meta(Call& c) {
  if (!sum_of_sparse(c)) promoted_meta(c);
}

constexpr Derivative self_itself = {
    {"self"}, {}, [](Backward& b) { return real_if(b.grad(), b.dtype("self")); }};
constexpr Op kSums[] = {
    function_of_two(
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", "self + alpha·other", sum_meta,
        {{{"other"}, {}, [](Backward& b) { return real_if(scaled(b.grad(), b["alpha"]), b.dtype("other")); }},
         self_itself},
        {"f32[2,3] f32[3]", "f32[2,3] 2", "i64[2] f32[]"}),
    function_of_two(
        "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", "self − alpha·other",
        promoted_meta,
        {{{"other"},
          {},
          [](Backward& b) { return real_if(scaled(neg(b.grad()), b["alpha"]), b.dtype("other")); }},
         self_itself}),
    only_functional(function_of_two(
        "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", "other − alpha·self",
        promoted_meta,
        {{{"other"}, {}, [](Backward& b) { return real_if(b.grad(), b.dtype("other")); }},
         {{"self"},
          {},
          [](Backward& b) { return real_if(scaled(neg(b.grad()), b["alpha"]), b.dtype("self")); }}})),
    node_named("AddBackward1",
               function_of_two("add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
                               "self + alpha·other", promoted_with_numbers_meta, {self_itself},
                               {"f32[2,3] 2", "i64[2] 0.5"})),
    node_named(
        "SubBackward1",
        function_of_two("sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
                        "self − alpha·other", promoted_with_numbers_meta, {self_itself}, {"f32[2,3] 2"})),
    node_named(
        "RsubBackward1",
        only_functional(function_of_two(
            "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", "other − alpha·self",
            promoted_with_numbers_meta,
            {{{"self"},
              {},
              [](Backward& b) { return real_if(scaled(neg(b.grad()), b["alpha"]), b.dtype("self")); }}},
            {"f32[2,3] 2"})))};

constexpr Op kProducts[] = {
    function_of_two("mul.Tensor(Tensor self, Tensor other) -> Tensor", "self · other", promoted_meta,
                    {{{"other"}, {"self"}, [](Backward& b) { return times(b, "self", "other"); }},
                     {{"self"}, {"other"}, [](Backward& b) { return times(b, "other", "self"); }}},
                    {"f32[2,3] f32[3]", "f32[2,3] 0.5"}),
    node_named(
        "MulBackward1",
        function_of_two(
            "mul.Scalar(Tensor self, Scalar other) -> Tensor", "self · other", promoted_with_numbers_meta,
            {{{"self"}, {}, [](Backward& b) { return real_if(b.grad() * b["other"], b.dtype("self")); }}},
            {"f32[2,3] 2"}))};

// A step function of the quotient is flat (FunctionsManual.cpp, div_tensor_self_backward).
Tensor flat_in(Backward& b, Name argument) {
  return call<"zeros_like">(b.session, b.grad(), b.dtype(argument));
}

// −grad · ((self / other) / other): recorded in this order (binary/f32/div).
Tensor divisor_gradient(Backward& b) {
  const Tensor first = b("self") / b("other");
  const Tensor second = conj(first / b("other"));
  return real_if(neg(b.grad()) * second, b.dtype("other"));
}

void division_mode_meta(Call& c) {
  if (c.given("rounding_mode")) return promoted_with_numbers_meta(c);
  promoted_floating_meta(c);
}

constexpr Op kQuotients[] = {
    function_of_two("div.Tensor(Tensor self, Tensor other) -> Tensor", "self / other", promoted_floating_meta,
                    {{{"other"}, {"self", "other"}, [](Backward& b) { return divisor_gradient(b); }},
                     {{"self"},
                      {"other"},
                      [](Backward& b) { return real_if(b.grad() / conj(b("other")), b.dtype("self")); }}},
                    {"f32[2,3] f32[3]", "i64[2] i64[2]", "f32[2] 3"}),
    node_named(
        "DivBackward1",
        function_of_two(
            "div.Scalar(Tensor self, Scalar other) -> Tensor", "self / other", promoted_floating_meta,
            {{{"self"}, {}, [](Backward& b) { return real_if(b.grad() / b["other"], b.dtype("self")); }}},
            {"f32[2,3] 2", "i64[2] 2"})),
    node_named("DivBackward2",
               function_of_two("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
                               "self / other, rounded (\"trunc\", \"floor\") or not", division_mode_meta,
                               {{{"other"},
                                 {"self", "other"},
                                 [](Backward& b) {
                                   return b.given("rounding_mode") ? flat_in(b, "other")
                                                                   : divisor_gradient(b);
                                 }},
                                {{"self"},
                                 {"other"},
                                 [](Backward& b) {
                                   return b.given("rounding_mode")
                                              ? flat_in(b, "self")
                                              : real_if(b.grad() / b("other"), b.dtype("self"));
                                 }}},
                               {"f32[2,3] f32[3] \"floor\"", "i64[2] i64[2] None"})),
    node_named("DivBackward3",
               function_of_two("div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
                               "self / other, rounded (\"trunc\", \"floor\") or not", division_mode_meta,
                               {{{"self"},
                                 {},
                                 [](Backward& b) {
                                   return b.given("rounding_mode")
                                              ? flat_in(b, "self")
                                              : real_if(b.grad() / b["other"], b.dtype("self"));
                                 }}},
                               {"f32[2,3] 2 \"trunc\""})),
    function_of_two("floor_divide(Tensor self, Tensor other) -> Tensor", "⌊self / other⌋", promoted_meta,
                    not_differentiable)};

// fmod and remainder: other's gradient is −grad · (self / other, rounded).
template <int mode>
Tensor modulus_gradient(Backward& b) {
  const Tensor quotient = call<"div.Tensor_mode">(b.session, b("self"), b("other"), mode ? "floor" : "trunc");
  return neg(b.grad()) * quotient;
}

constexpr Op kRemainders[] = {
    node_named(
        "FmodBackward1",
        function_of_two("fmod.Tensor(Tensor self, Tensor other) -> Tensor",
                        "self − other · trunc(self / other)", promoted_meta,
                        {{{"other"}, {"self", "other"}, [](Backward& b) { return modulus_gradient<0>(b); }},
                         plus("self")})),
    function_of_two("fmod.Scalar(Tensor self, Scalar other) -> Tensor", "self − other · trunc(self / other)",
                    promoted_with_numbers_meta, {plus("self")}, {"f32[2,3] 2"}),
    node_named(
        "RemainderBackward1",
        function_of_two("remainder.Tensor(Tensor self, Tensor other) -> Tensor",
                        "self − other · ⌊self / other⌋", promoted_meta,
                        {{{"other"}, {"self", "other"}, [](Backward& b) { return modulus_gradient<1>(b); }},
                         plus("self")})),
    function_of_two("remainder.Scalar(Tensor self, Scalar other) -> Tensor", "self − other · ⌊self / other⌋",
                    promoted_with_numbers_meta, {plus("self")}, {"f32[2,3] 2"})};

// The larger of two takes the gradient, equal ones half of it each (recorded: binary/f32/maximum). Before 2.15 the
// mask is made last.
Tensor larger_gradient(Backward& b, Tensor (*loses)(const Tensor&, Value)) {
  const Tensor half = b.grad() / 2;
  const Tensor equal = eq(b("self"), b("other"));
  const Tensor gradient = where(equal, half, b.grad());
  const Tensor lost = loses(b("self"), b("other"));
  return call<"masked_fill_.Scalar">(b.session, gradient, lost, 0);
}

template <auto loses>
Tensor larger_gradient_mask_first(Backward& b) {
  const Tensor lost = loses(b("self"), b("other"));
  return shared_gradient(b, lost, b("self"), b("other"));
}

// fmax and fmin ignore NaN: self wins where it compares so, or where other is NaN. Before 2.15 it wins ties.
template <auto compare, bool of_self>
Tensor nan_ignoring_gradient(Backward& b) {
  const Tensor better = compare(b("self"), b("other"));
  const Tensor missing = isnan(b("other"));
  const Tensor self_wins = call<"logical_or_">(b.session, better, missing);
  if (of_self) return masked_fill(b.grad(), call<"logical_not_">(b.session, self_wins), 0);
  return masked_fill(b.grad(), self_wins, 0);
}

template <auto wins, bool of_self>
Tensor nan_ignoring_shared_gradient(Backward& b) {
  const Tensor better = wins(b("self"), b("other"));
  const Tensor missing = isnan(b("other"));
  Tensor lost = call<"logical_or_">(b.session, better, missing);
  if (of_self) lost = call<"logical_not_">(b.session, lost);
  return shared_gradient(b, lost, b("self"), b("other"));
}

constexpr Op one_of_two(std::string_view schema, std::string_view summary, Formula of_other,
                        Formula of_self) {
  constexpr Names both = {"self", "other"};
  return only_functional(function_of_two(schema, summary, promoted_meta,
                                         {{{"other"}, both, of_other}, {{"self"}, both, of_self}}));
}

constexpr std::string_view kMaximum = "maximum(Tensor self, Tensor other) -> Tensor",
                           kMinimum = "minimum(Tensor self, Tensor other) -> Tensor",
                           kFmax = "fmax(Tensor self, Tensor other) -> Tensor",
                           kFmin = "fmin(Tensor self, Tensor other) -> Tensor";

constexpr Op kExtrema[] = {
    before({2, 15}, one_of_two(
                        kMaximum, "max(self, other)", [](Backward& b) { return larger_gradient(b, gt); },
                        [](Backward& b) { return larger_gradient(b, lt); })),
    since({2, 15},
          one_of_two(
              kMaximum, "max(self, other)", [](Backward& b) { return larger_gradient_mask_first<gt>(b); },
              [](Backward& b) { return larger_gradient_mask_first<lt>(b); })),
    before({2, 15}, one_of_two(
                        kMinimum, "min(self, other)", [](Backward& b) { return larger_gradient(b, lt); },
                        [](Backward& b) { return larger_gradient(b, gt); })),
    since({2, 15},
          one_of_two(
              kMinimum, "min(self, other)", [](Backward& b) { return larger_gradient_mask_first<lt>(b); },
              [](Backward& b) { return larger_gradient_mask_first<gt>(b); })),
    before({2, 15}, one_of_two(
                        kFmax, "max(self, other), NaN ignored",
                        [](Backward& b) { return nan_ignoring_gradient<ge, false>(b); },
                        [](Backward& b) { return nan_ignoring_gradient<ge, true>(b); })),
    since({2, 15}, one_of_two(
                       kFmax, "max(self, other), NaN ignored",
                       [](Backward& b) { return nan_ignoring_shared_gradient<gt, false>(b); },
                       [](Backward& b) { return nan_ignoring_shared_gradient<ge, true>(b); })),
    before({2, 15}, one_of_two(
                        kFmin, "min(self, other), NaN ignored",
                        [](Backward& b) { return nan_ignoring_gradient<le, false>(b); },
                        [](Backward& b) { return nan_ignoring_gradient<le, true>(b); })),
    since({2, 15}, one_of_two(
                       kFmin, "min(self, other), NaN ignored",
                       [](Backward& b) { return nan_ignoring_shared_gradient<lt, false>(b); },
                       [](Backward& b) { return nan_ignoring_shared_gradient<le, true>(b); })),
    composite_of("max.other(Tensor self, Tensor other) -> Tensor", "max(self, other)",
                 [](Call& c) { c.result(call<"maximum">(c.session, c.tensor("self"), c.tensor("other"))); },
                 {"f32[2] f32[2]"}),
    composite_of("min.other(Tensor self, Tensor other) -> Tensor", "min(self, other)",
                 [](Call& c) { c.result(call<"minimum">(c.session, c.tensor("self"), c.tensor("other"))); },
                 {"f32[2] f32[2]"})};

constexpr Op kBinary[] = {
    {.schema = "maximum.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
     .summary = "out := the larger of self and other",
     .meta = [](Call& c) { c.result(c.tensor("out")); },
     .derivatives = not_differentiable,
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3] f32[2,3] f32[2,3]"}}};

}  // namespace

Tables binary_operators() {
  static constexpr Records tables[] = {kSums, kProducts, kQuotients, kRemainders, kExtrema, kBinary};
  return tables;
}

}  // namespace metaprof
