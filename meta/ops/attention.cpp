// scaled_dot_product_attention: the choice of an implementation, and the one that is made of other operators.

#include "meta/ops/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "meta/ops/all.h"
#include "meta/ops/functions.h"

namespace metaprof {

FlopCount attention_flops(const Call& c) {
  const Sizes &query = c.tensor("query").sizes(), &value = c.tensor("value").sizes();
  const int64_t pairs = query[0] * query[1] * query[2] * value[2];
  return {.counted = 2 * multiply(pairs, query[3] + value[3])};
}

FlopCount attention_backward_flops(const Call& c) {
  const Sizes &query = c.tensor("query").sizes(), &value = c.tensor("value").sizes();
  const int64_t pairs = query[0] * query[1] * query[2] * value[2];
  return {.counted = 2 * multiply(pairs, 3 * query[3] + 2 * value[3])};
}

namespace {

void check(const Call& c, const AttentionCall& a) {
  for (const Tensor* t : {&a.query, &a.key, &a.value})
    if (t->dim() < 2) c.error(fmt::format("query, key and value need two dimensions; got {}", describe(*t)));
  if (a.query.dtype() != a.key.dtype() || a.query.dtype() != a.value.dtype())
    c.error(fmt::format("query, key and value must have one dtype; got {}, {} and {}", describe(a.query),
                        describe(a.key), describe(a.value)));
  if (a.mask.defined() && a.mask.dtype() != DType::b8 && a.mask.dtype() != a.query.dtype())
    c.error(fmt::format("the mask must be bool or of the query's dtype; got {} for {}", describe(a.mask),
                        describe(a.query)));
  if (a.mask.defined() && a.causal) c.error("takes either a mask or is_causal, not both");
}

// A mask of booleans becomes one that is added: 0 where it is true, a large negative number elsewhere.
Tensor additive_mask(Session& s, const Tensor& mask, DType dtype, double masked) {
  if (!mask.defined() || mask.dtype() != DType::b8) return mask;
  const Tensor low = call<"scalar_tensor">(s, masked, dtype, Value(), mask.device());
  return call<"where.ScalarSelf">(s, mask, 0.0, low);
}

// Rows of a mask for the memory-efficient kernels begin at multiples of 8 elements: a padded copy, cut back.
Tensor padded_mask(Session& s, const Tensor& mask) {
  constexpr int64_t alignment = 8;
  const int64_t last = mask.size(-1);
  if (last % alignment == 0) return mask;
  const Tensor padded = call<"pad">(s, mask, Sizes{0, alignment - last % alignment});
  return call<"slice.Tensor">(s, padded, -1, 0, last);
}

void efficient(Call& c, const AttentionCall& a, Tensor mask) {
  if (mask.defined()) {
    mask = expand(mask, Sizes{a.query.size(0), a.query.size(1), a.query.size(2), a.key.size(2)});
    mask = padded_mask(c.session, mask);
  }
  Results all = call<"_scaled_dot_product_efficient_attention">(
      c.session, a.query, a.key, a.value, mask,
      c.session.modes.grad && (a.requires_grad() || mask.requires_grad()), a.dropout, a.causal, c["scale"]);
  c.result(std::move(all.list()[0]));
}

void attention_body(Call& c) {
  const AttentionCall a{c.tensor("query"),      c.tensor("key"),     c.tensor("value"),
                        c.tensor("attn_mask"),  c.real("dropout_p"), c.boolean("is_causal"),
                        c.boolean("enable_gqa")};
  check(c, a);
  const AttentionBackend backend = choose_attention(c.session, a);
  const double masked = -std::numeric_limits<double>::infinity();
  const Tensor mask = additive_mask(c.session, a.mask, a.query.dtype(), masked);
  switch (backend) {
    case AttentionBackend::efficient: return efficient(c, a, mask);
    default: c.error("this implementation is not modelled yet");
  }
}

}  // namespace

AttentionBackend choose_attention(const Session&, const AttentionCall&) {
  return AttentionBackend::efficient;
}

void add_attention_operators(std::vector<Op>& ops) {
  ops.push_back({.schema =
                     "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? "
                     "attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool "
                     "enable_gqa=False) -> Tensor",
                 .summary = "softmax(scale · query · keyᵀ + mask) · value",
                 .meta = composite(attention_body),
                 .kernels = {},
                 .derivatives = by_body,
                 .flops = by_body,
                 .examples = {"f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8]",
                              "f32[2,3,4,8] f32[2,3,4,8] f32[2,3,4,8] None 0.0 True"},
                 .facts = {.autocast = Autocast::lower_precision}});
}

}  // namespace metaprof
