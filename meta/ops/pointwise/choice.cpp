// Choosing between tensors element by element: where, clamp, masked_fill; and three-operand arithmetic.

#include "meta/op/versions.h"
#include "meta/ops/pointwise/family.h"
#include "meta/ops/pointwise/ties.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/elementwise.h"

namespace metaprof {
namespace {

// --- where

void where_meta(Call& c) {
  const Tensor &condition = c.tensor("condition"), &self = c.tensor("self"), &other = c.tensor("other");
  elementwise(c, {&condition, &self, &other}, result_type({&self, &other}));
}

// ATen/native/TensorCompare.cpp, where_self_out: operands of another dtype, and host scalars, are copied
// first.
Tensor where_operand(const Call& c, const Tensor& operand, DType dtype) {
  Tensor out = operand.dtype() == dtype ? operand : to(operand, dtype);
  if (out.device().type == c.device().type) return out;
  return call<"_to_copy">(c.session, out, Value(), Value(), c.device());
}

void where_kernel(Call& c) {
  const DType dtype = c.result_tensor().dtype();
  const Tensor self = where_operand(c, c.tensor("self"), dtype);
  const Tensor other = where_operand(c, c.tensor("other"), dtype);
  const Tensor condition = where_operand(c, c.tensor("condition"), c.tensor("condition").dtype());
  c.allocate(0);
}

Tensor scalar_for(const Tensor& like, const Value& number, DType dtype) {
  return call<"scalar_tensor">(session_of(like), number, dtype, Value(), like.device());
}

void where_number_body(Call& c) {
  const bool number_first = !c["self"].is_tensor();
  const Tensor& tensor = number_first ? c.tensor("other") : c.tensor("self");
  const Value& number = number_first ? c["self"] : c["other"];
  const DType dtype = result_type(tensor, number);
  const Tensor scalar = scalar_for(tensor, number, dtype);
  const Tensor cast = to(tensor, dtype);
  c.result(number_first ? where(c.tensor("condition"), scalar, cast)
                        : where(c.tensor("condition"), cast, scalar));
}

void where_numbers_body(Call& c) {
  const Value numbers[] = {c["self"], c["other"]};
  const DType dtype = result_type(numbers);
  const Tensor& condition = c.tensor("condition");
  const Tensor other = scalar_for(condition, c["other"], dtype);
  const Tensor self = scalar_for(condition, c["self"], dtype);
  c.result(where(condition, self, other));
}

constexpr Derivative self_row = {{"self"}, {"condition"}, [](Backward& b) {
                                   return call<"where.ScalarOther">(b.session, b("condition"), b.grad(), 0);
                                 }};
constexpr Derivative other_row = {{"other"}, {"condition"}, [](Backward& b) {
                                    return call<"where.ScalarSelf">(b.session, b("condition"), 0, b.grad());
                                  }};
constexpr Op kWhere[] = {
    {.schema = "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
     .summary = "self where the condition holds, else other",
     .meta = where_meta,
     .host_code = {{DeviceType::cuda, where_kernel}},
     .derivatives = {self_row, other_row},
     .flops = elementwise_flops<1>,
     .examples = {"b8[2,3] f32[2,3] f32[3]", "b8[3] f32[] f32[2,1]"}},
    composite_of("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
                 "self where the condition holds, else a number", where_number_body, {"b8[2,3] f32[2,3] 0"}),
    composite_of("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
                 "a number where the condition holds, else other", where_number_body, {"b8[2,3] 0 f32[2,3]"}),
    composite_of("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
                 "one number where the condition holds, else another", where_numbers_body, {"b8[2,3] 0 1"})};

// --- clamp: the gradient passes where self is within the bounds, them included (FunctionsManual.cpp,
// clamp_backward).

Tensor clamp_gradient(Backward& b, const Value& min, const Value& max) {
  if (min.is_none() && max.is_none()) return b.grad();
  const Tensor zero = scalar_like(b.grad(), 0.0);
  const Tensor above = min.is_none() ? Tensor() : ge(b("self"), min);
  const Tensor below = max.is_none() ? Tensor() : le(b("self"), max);
  if (!above.defined()) return where(below, b.grad(), zero);
  if (!below.defined()) return where(above, b.grad(), zero);
  const Tensor inside = call<"logical_and_">(b.session, above, below);
  return where(inside, b.grad(), zero);
}

// A bound takes the gradient where it is the result; of crossed bounds, max is.
Tensor min_gradient(Backward& b, const Tensor& zero) {
  const Tensor below = lt(b("self"), b("min"));
  if (!b("max").defined()) return where(below, b.grad(), zero);
  const Tensor ordered = lt(b("min"), b("max"));
  const Tensor wins = call<"logical_and_">(b.session, below, ordered);
  return where(wins, b.grad(), zero);
}
Tensor max_gradient(Backward& b, const Tensor& zero) {
  const Tensor above = gt(b("self"), b("max"));
  if (!b("min").defined()) return where(above, b.grad(), zero);
  const Tensor crossed = lt(b("max"), b("min"));
  const Tensor wins = call<"logical_or_">(b.session, above, crossed);
  return where(wins, b.grad(), zero);
}
Gradients bounds_gradients(Backward& b) {
  const Tensor zero = scalar_like(b.grad(), 0.0);
  Tensor of_min, of_max;
  if (b.wants("min")) of_min = min_gradient(b, zero);
  if (b.wants("max")) of_max = max_gradient(b, zero);
  return {of_min, of_max};
}

template <auto compare>
Tensor passes_if(Backward& b, const Value& bound) {
  const Tensor zero = scalar_like(b.grad(), 0.0);
  const Tensor passes = compare(b("self"), bound);
  return where(passes, b.grad(), zero);
}

// From 2.15 on (FunctionsManual.cpp, clamp_backward and clamp_backward_min_max; recorded: `shapes/ternary/*/clamp-*`):
// where self equals a bound that is a tensor, they share the gradient, and of equal bounds both are asked.

Gradients both_bounds_gradients(Backward& b) {
  Session& s = b.session;
  const Tensor &self = b("self"), &min = b("min"), &max = b("max");
  const Tensor ordered = lt(min, max), same = eq(min, max);
  Tensor of_min, of_max;
  if (b.wants("min")) {
    Tensor wins;
    {
      const Tensor at_most = le(self, min), first = call<"logical_and">(s, ordered, at_most);
      const Tensor below = lt(self, min), second = call<"logical_and">(s, same, below);
      wins = call<"logical_or">(s, first, second);
    }
    const Tensor lost = call<"logical_not">(s, wins);
    of_min = shared_gradient(b, lost, self, min);
  }
  if (b.wants("max")) {
    const Tensor crossed = lt(max, min);
    Tensor wins;
    {
      const Tensor at_least = ge(self, max), first = call<"logical_and">(s, ordered, at_least);
      const Tensor either = call<"logical_or">(s, crossed, first);
      const Tensor above = gt(self, max), second = call<"logical_and">(s, same, above);
      wins = call<"logical_or">(s, either, second);
    }
    const Tensor lost = call<"logical_not">(s, wins);
    const Tensor half = b.grad() / 2, equal = eq(self, max), shared = call<"logical_and">(s, equal, ordered);
    of_max = where(shared, half, b.grad());
    call<"masked_fill_.Scalar">(s, of_max, lost, 0);
  }
  return {of_min, of_max};
}

// A bound wins where self is beyond it.
Tensor only_bound_gradient(Backward& b, Name bound, bool of_min) {
  const Tensor lost = of_min ? gt(b("self"), b(bound)) : lt(b("self"), b(bound));
  return shared_gradient(b, lost, b("self"), b(bound));
}

Gradients shared_bounds_gradients(Backward& b) {
  if (b("min").defined() && b("max").defined()) return both_bounds_gradients(b);
  return {b.wants("min") ? only_bound_gradient(b, "min", true) : Tensor(),
          b.wants("max") ? only_bound_gradient(b, "max", false) : Tensor()};
}

// What is left of the gradient for self.
Tensor clamped_gradient(Backward& b) {
  const Tensor &self = b("self"), &min = b("min"), &max = b("max");
  if (!min.defined() && !max.defined()) return b.grad();
  if (!max.defined()) return only_bound_gradient(b, "min", false);
  if (!min.defined()) return only_bound_gradient(b, "max", true);
  Session& s = b.session;
  const Tensor ordered = lt(min, max);
  Tensor shared, beyond;
  {
    const Tensor at_min = eq(self, min), at_max = eq(self, max),
                 at_one = call<"logical_or">(s, at_min, at_max);
    shared = call<"logical_and">(s, at_one, ordered);
  }
  {
    const Tensor below = lt(self, min), above = gt(self, max);
    beyond = call<"logical_or">(s, below, above);
  }
  const Tensor half = b.grad() / 2, gradient = where(shared, half, b.grad());
  return call<"masked_fill_.Scalar">(s, gradient, beyond, 0);
}

constexpr std::string_view kClampTensor =
                               "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
                           kClampMinTensor = "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
                           kClampMaxTensor = "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor";

constexpr Op clamp_by_tensors(const Derivatives& derivatives) {
  return function_of_two(kClampTensor, "self between two bounds", promoted_meta, derivatives,
                         {"f32[2,3] f32[3] f32[3]", "f32[2,3] None f32[2,3]"});
}

constexpr Op kClampSince15[] = {
    since({2, 15},
          clamp_by_tensors(
              {{{"min", "max"}, {"self", "min", "max"}, shared_bounds_gradients},
               {{"self"}, {"self", "min", "max"}, [](Backward& b) { return clamped_gradient(b); }}})),
    since(
        {2, 15},
        node_named(
            "ClampMinBackward1",
            function_of_two(
                kClampMinTensor, "max(self, min)", promoted_meta,
                {{{"min"}, {"self", "min"}, [](Backward& b) { return only_bound_gradient(b, "min", true); }},
                 {{"self"},
                  {"self", "min"},
                  [](Backward& b) { return only_bound_gradient(b, "min", false); }}}))),
    since({2, 15},
          node_named("ClampMaxBackward1",
                     function_of_two(kClampMaxTensor, "min(self, max)", promoted_meta,
                                     {{{"max"},
                                       {"self", "max"},
                                       [](Backward& b) { return only_bound_gradient(b, "max", false); }},
                                      {{"self"}, {"self", "max"}, [](Backward& b) {
                                         return only_bound_gradient(b, "max", true);
                                       }}})))};

constexpr Op kClamp[] = {
    node_named("ClampBackward1",
               function_of_one(
                   "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
                   "self between two bounds", promoted_with_numbers_meta,
                   {{{"self"}, {"self"}, [](Backward& b) { return clamp_gradient(b, b["min"], b["max"]); }}},
                   {"f32[2,3] 0", "f32[2,3] None 1", "f32[2,3] -1 1", "i64[2] 0.5"})),
    before({2, 15}, clamp_by_tensors({{{"min", "max"}, {"self", "min", "max"}, bounds_gradients},
                                      {{"self"},
                                       {"self", "min", "max"},
                                       [](Backward& b) {
                                         const Value min = b("min").defined() ? Value(b("min")) : Value();
                                         const Value max = b("max").defined() ? Value(b("max")) : Value();
                                         return clamp_gradient(b, min, max);
                                       }}})),
    function_of_one(
        "clamp_min(Tensor self, Scalar min) -> Tensor", "max(self, min)", promoted_with_numbers_meta,
        {{{"self"}, {"self"}, [](Backward& b) { return passes_if<ge>(b, b["min"]); }}}, {"f32[2,3] 0"}),
    function_of_one(
        "clamp_max(Tensor self, Scalar max) -> Tensor", "min(self, max)", promoted_with_numbers_meta,
        {{{"self"}, {"self"}, [](Backward& b) { return passes_if<le>(b, b["max"]); }}}, {"f32[2,3] 0"}),
    before({2, 15},
           node_named(
               "ClampMinBackward1",
               function_of_two(
                   kClampMinTensor, "max(self, min)", promoted_meta,
                   {{{"min"}, {"self", "min"}, [](Backward& b) { return passes_if<lt>(b, b("min")); }},
                    {{"self"}, {"self", "min"}, [](Backward& b) { return passes_if<ge>(b, b("min")); }}}))),
    before({2, 15},
           node_named(
               "ClampMaxBackward1",
               function_of_two(
                   kClampMaxTensor, "min(self, max)", promoted_meta,
                   {{{"max"}, {"self", "max"}, [](Backward& b) { return passes_if<gt>(b, b("max")); }},
                    {{"self"}, {"self", "max"}, [](Backward& b) { return passes_if<le>(b, b("max")); }}})))};

// --- masked_fill

// The functional form is a contiguous copy that is then written to.
void masked_fill_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &mask = c.tensor("mask");
  const Tensor* operands[] = {&mask, &self};
  c.output(broadcast_all(c, operands), self.dtype());
}

Gradients masked_gradient(Backward& b) { return {masked_fill(b.grad(), b("mask"), 0)}; }

constexpr Op kMaskedFill[] = {
    {.schema = "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
     .summary = "a number where the mask is true, else self",
     .meta = masked_fill_meta,
     .derivatives = {{{"self"}, {"mask"}, masked_gradient}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] b8[3] 0"},
     .facts = {.in_place_too = true}},
    {.schema = "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
     .summary = "a value where the mask is true, else self",
     .meta = masked_fill_meta,
     .derivatives = {{{"self"}, {"mask"}, masked_gradient},
                     {{"value"},
                      {"mask"},
                      [](Backward& b) {
                        return sum(call<"masked_select">(b.session, b.grad(), b("mask")));
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] b8[3] f32[]"},
     .facts = {.node = "MaskedFillBackward1", .in_place_too = true}}};

// --- three operands

constexpr Derivative self_times_one = {
    {"self"}, {}, [](Backward& b) { return real_if(b.grad(), b.dtype("self")); }};
// The gradient of `of`, which is multiplied by `factor`.
Tensor slope(Backward& b, Name of, const Tensor& factor) {
  return real_if(b.grad() * conj(factor), b.dtype(of));
}

constexpr Op kAddedProducts[] = {
    under_autocast(
        Autocast::promote,
        function_of_two("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
                        "self + value · tensor1 · tensor2", promoted_meta,
                        {self_times_one,
                         {{"tensor1"},
                          {"tensor2"},
                          [](Backward& b) { return slope(b, "tensor1", b("tensor2") * b["value"]); }},
                         {{"tensor2"},
                          {"tensor1"},
                          [](Backward& b) { return slope(b, "tensor2", b("tensor1") * b["value"]); }}},
                        {"f32[2,3] f32[2,3] f32[3]"})),
    under_autocast(
        Autocast::promote,
        function_of_two("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
                        "self + value · tensor1 / tensor2", promoted_meta,
                        {self_times_one,
                         {{"tensor1"},
                          {"tensor2"},
                          [](Backward& b) { return slope(b, "tensor1", b["value"] / b("tensor2")); }},
                         {{"tensor2"},
                          {"tensor1", "tensor2"},
                          [](Backward& b) {
                            const Tensor square = b("tensor2") * b("tensor2");
                            const Tensor product = b["value"] * b("tensor1");
                            const Tensor quotient = conj(product / square);
                            return real_if(neg(b.grad()) * quotient, b.dtype("tensor2"));
                          }}},
                        {"f32[2,3] f32[2,3] f32[3]"}))};

Value one_minus(const Value& weight) { return Value(1 - weight.real()); }

constexpr Op kLerp[] = {
    function_of_two("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
                    "self + weight · (end − self)", promoted_meta,
                    {{{"end"}, {}, [](Backward& b) { return b.grad() * b["weight"]; }},
                     {{"self"}, {}, [](Backward& b) { return b.grad() * one_minus(b["weight"]); }}},
                    {"f32[2,3] f32[2,3] 0.5"}),
    node_named(
        "LerpBackward1",
        function_of_two("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
                        "self + weight · (end − self)", promoted_meta,
                        {{{"end"}, {"weight"}, [](Backward& b) { return b.grad() * conj(b("weight")); }},
                         {{"self"}, {"weight"}, [](Backward& b) { return b.grad() * conj(1 - b("weight")); }},
                         {{"weight"},
                          {"end", "self"},
                          [](Backward& b) { return b.grad() * conj(b("end") - b("self")); }}},
                        {"f32[2,3] f32[2,3] f32[2,3]"}))};

}  // namespace

Tables choice_operators() {
  static constexpr Records tables[] = {kWhere, kClamp, kClampSince15, kMaskedFill, kAddedProducts, kLerp};
  return tables;
}

}  // namespace metaprof
