// scaled_dot_product_attention: the choice of an implementation, and the one that is made of other operators.

#include "meta/ops/attention/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "meta/op/versions.h"
#include "meta/ops/attention/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/session/call_in_trace.h"

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

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Pads the last dimension up to a multiple of 8.
Tensor padded(Session& s, const Tensor& tensor) {
  const int64_t missing = (8 - tensor.size(-1) % 8) % 8;
  return call<"pad">(s, tensor, Sizes{0, missing});
}

// Rows of a mask for the memory-efficient kernels begin at multiples of 8 elements: a padded copy, cut back.
Tensor aligned_mask(Session& s, const AttentionCall& a, const Tensor& mask) {
  const Sizes sizes{a.query.size(0), a.query.size(1), a.query.size(2), a.key.size(2)};
  const int64_t last = mask.size(-1);
  if (last % 8 == 0) return expand(mask, sizes);
  return expand(call<"slice.Tensor">(s, padded(s, mask), -1, 0, last), sizes);
}

bool needs_statistics(const Session& s, const AttentionCall& a) { return s.modes.grad && a.requires_grad(); }

void efficient(Call& c, const AttentionCall& a, Tensor& mask) {
  if (mask.defined()) mask = aligned_mask(c.session, a, mask);
  Results all = call_all<"_scaled_dot_product_efficient_attention">(c.session, a.query, a.key, a.value, mask,
                                                                    needs_statistics(c.session, a), a.dropout,
                                                                    a.causal, c["scale"]);
  c.result(std::move(all.list()[0]));
}

void cudnn(Call& c, const AttentionCall& a, const Tensor& mask) {
  Results all = call_all<"_scaled_dot_product_cudnn_attention">(c.session, a.query, a.key, a.value, mask,
                                                                needs_statistics(c.session, a), a.dropout,
                                                                a.causal, false, c["scale"]);
  c.result(std::move(all.list()[0]));
}

// Heads are padded to a multiple of 8 and cut back; the scale is that of the true size.
void flash(Call& c, const AttentionCall& a) {
  Session& s = c.session;
  const int64_t head = a.query.size(-1);
  const Value scale = c.given("scale") ? c["scale"] : Value(1 / std::sqrt(double(head)));
  if (head % 8 == 0) {
    Results all = call_all<"_scaled_dot_product_flash_attention">(s, a.query, a.key, a.value, a.dropout,
                                                                  a.causal, false, scale);
    return c.result(std::move(all.list()[0]));
  }
  const Tensor query = padded(s, a.query), key = padded(s, a.key), value = padded(s, a.value);
  Results all = call_all<"_scaled_dot_product_flash_attention">(s, query, key, value, a.dropout, a.causal,
                                                                false, scale);
  c.result(call<"slice.Tensor">(s, all[0], -1, 0, head));
}

void flash_for_cpu(Call& c, const AttentionCall& a, const Tensor& mask) {
  Results all = call_all<"_scaled_dot_product_flash_attention_for_cpu">(
      c.session, a.query, a.key, a.value, a.dropout, a.causal, mask, c["scale"]);
  c.result(std::move(all.list()[0]));
}

void math(Call& c, const AttentionCall& a, const Tensor& mask) {
  Results all = call_all<"_scaled_dot_product_attention_math">(
      c.session, a.query, a.key, a.value, mask, a.dropout, a.causal, Value(), c["scale"], a.grouped_heads);
  c.result(std::move(all.list()[0]));
}

AttentionCall arguments_of(const Call& c) {
  return {c.tensor("query"),   c.tensor("key"),        c.tensor("value"),       c.tensor("attn_mask"),
          c.real("dropout_p"), c.boolean("is_causal"), c.boolean("enable_gqa"), false};
}

// A call that only says something: it is made of what is inside it, and costs nothing.
class SpokenCall {
 public:
  SpokenCall(Session& session, std::string_view words)
      : index_(static_cast<uint32_t>(session.trace.calls.size())),
        depth_(session.depth, session.depth + 1),
        end_(session.trace, index_) {
    CallRecord& record = session.trace.calls.emplace_back();
    record.op = session.trace.intern(words);
    record.module = session.module;
    record.phase = session.phase;
    record.composite = true;
    record.depth = static_cast<uint16_t>(session.depth - 1);
    record.node = session.node;
    session.trace.add({.kind = Event::Kind::call, .id = index_});
  }

 private:
  uint32_t index_;
  Scoped<uint16_t> depth_;
  EndOfCall end_;
};

// What was taken, and why nothing that comes before it, for who reads the trace (profiler/attention.h).
void record_choice(Session& session, const AttentionChoice& choice) {
  for (const AttentionRefusal& refusal : choice.refused) {
    const SpokenCall implementation(session, to_string(refusal.backend));
    const SpokenCall why(session, refusal.why);
  }
  const SpokenCall taken(session, to_string(choice.taken));
}

void attend(Call& c, const AttentionCall& a) {
  check(c, a);
  const AttentionChoice choice = choose_attention(c.session, a);
  record_choice(c.session, choice);
  const AttentionBackend backend = choice.taken;
  // cuDNN has no infinity in masks.
  const double masked = backend == AttentionBackend::cudnn ? -65504.0 : kMinusInfinity;
  Tensor mask = additive_mask(c.session, a.mask, a.query.dtype(), masked);
  switch (backend) {
    case AttentionBackend::cudnn: return cudnn(c, a, mask);
    case AttentionBackend::flash: return flash(c, a);
    case AttentionBackend::flash_for_cpu: return flash_for_cpu(c, a, mask);
    case AttentionBackend::efficient: return efficient(c, a, mask);
    case AttentionBackend::math: return math(c, a, mask);
  }
}

void attention_body(Call& c) { attend(c, arguments_of(c)); }

// From 2.15 on without a batch as a batch of one (recorded: `opinfo/nn.functional.scaled_dot_product_attention/0`).
void attention_body_since_15(Call& c) {
  AttentionCall a = arguments_of(c);
  a.wide_heads_train_in_pairs = true;
  const bool unbatched = a.query.is_cuda() && a.query.dim() == 3 && a.key.dim() == 3 && a.value.dim() == 3;
  if (!unbatched) return attend(c, a);
  const Tensor query = unsqueeze(a.query, 0), key = unsqueeze(a.key, 0), value = unsqueeze(a.value, 0);
  const Tensor mask = a.mask.defined() && a.mask.dim() == 3 ? unsqueeze(a.mask, 0) : a.mask;
  attend(c, {.query = query,
             .key = key,
             .value = value,
             .mask = mask,
             .dropout = a.dropout,
             .causal = a.causal,
             .grouped_heads = a.grouped_heads,
             .wide_heads_train_in_pairs = true});
  c.results[0] = Value(call<"squeeze.dim">(c.session, c.results[0].tensor(), 0));
}

// Keys and values repeated for all heads of queries.
Tensor for_all_heads(Session& s, const AttentionCall& a, const Tensor& tensor) {
  if (!a.grouped_heads) return tensor;
  if (tensor.size(-3) == 0)
    fail("attention with groups of heads needs heads of keys and values, got {}", describe(tensor));
  return call<"repeat_interleave.self_int">(s, tensor, a.query.size(-3) / tensor.size(-3), -3);
}

// The formula operator by operator; 16-bit inputs are computed in fp32.
void math_body(Call& c) {
  Session& s = c.session;
  const AttentionCall a = arguments_of(c);
  const DType dtype = a.query.dtype();
  Tensor mask = a.mask;
  const Tensor query = to(a.query, accumulate_type(dtype)), key = to(a.key, accumulate_type(dtype)),
               value = to(a.value, accumulate_type(dtype));
  const double scale = c.given("scale") ? c.real("scale") : 1 / std::sqrt(double(query.size(-1)));
  const double root = std::sqrt(std::abs(scale));
  const Tensor scaled = call<"mul.Scalar">(s, query, scale < 0 ? -root : root);
  if (a.causal) {
    const Tensor triangle = call<"tril">(
        s, call<"ones">(s, Sizes{query.size(-2), key.size(-2)}, DType::b8, Value(), query.device()));
    mask = additive_mask(s, triangle, query.dtype(), kMinusInfinity);
  }
  const Tensor keys = for_all_heads(s, a, key), values = for_all_heads(s, a, value);
  Tensor weights = call<"matmul">(s, scaled, call<"mul.Scalar">(s, transpose(keys, -2, -1), root));
  if (mask.defined()) call<"add_.Tensor">(s, weights, mask);
  weights = call<"_safe_softmax">(s, weights, -1);
  if (a.dropout > 0) weights = call<"dropout">(s, weights, a.dropout, true);
  // Arguments are evaluated from right to left: the weights are cast back before the product is made.
  const Tensor out_weights = to(weights, dtype);
  c.result(to(call<"matmul">(s, weights, values), dtype));
  c.result(out_weights);
}

constexpr Op attention(void (*body)(Call&)) {
  return {
      .schema =
          "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
          "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
      .summary = "softmax(scale · query · keyᵀ + mask) · value",
      .meta = composite(body),
      .derivatives = by_body,
      .flops = by_body,
      .examples = {"f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8]",
                   "f32[2,3,4,8] f32[2,3,4,8] f32[2,3,4,8] None 0.0 True"},
      .facts = {.autocast = Autocast::lower_precision, .product = true}};
}

constexpr Op kAttention[] = {
    before({2, 15}, attention(attention_body)),
    since({2, 15}, attention(attention_body_since_15)),
    {.schema = "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? "
               "attn_mask=None, float dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, "
               "float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
     .summary = "attention as products and a softmax; also returns the weights",
     .meta = composite(math_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8]"}}};

}  // namespace

Tables attention_operators() {
  static constexpr Records tables[] = {kAttention};
  return tables;
}

}  // namespace metaprof
