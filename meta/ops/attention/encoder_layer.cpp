// What torch.nn.MultiheadAttention and torch.nn.TransformerEncoderLayer call in eval mode without gradients
// (aten/src/ATen/native/transformers: attention.cpp, transformer.cpp, cuda/attention.cu, 2.11). Nested tensors are refused.
// They have no derivative: what they call is not recorded.

#include <fmt/format.h>

#include <cmath>

#include "meta/ops/attention/attention.h"
#include "meta/ops/attention/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

// [batch, length, heads · head] as [batch, heads, length, head].
Tensor by_heads(const Tensor& tensor, int64_t heads, int64_t head) {
  return transpose(view(tensor, Sizes{tensor.size(0), -1, heads, head}), 1, 2);
}

// [batch, heads, …] as [batch · heads, …].
Tensor as_batch(const Tensor& tensor) {
  return view(tensor, Sizes{multiply(tensor.size(0), tensor.size(1)), tensor.size(2), tensor.size(3)});
}

Tensor linear(Session& s, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return call<"linear">(s, input, weight, bias);
}

Tensor times_transposed(Session& s, const Tensor& a, const Tensor& weight) {
  const Tensor transposed = t(weight);
  const Tensor rows = reshape(a, Sizes{multiply(a.size(0), a.size(1)), a.size(2)});
  return call<"_unsafe_view">(s, mm(rows, transposed), Sizes{a.size(0), a.size(1), weight.size(0)});
}

struct HeadsCall {
  const Tensor &query, &key, &value, &in_weight, &in_bias, &out_weight, &out_bias, &mask;
  int64_t embedding = 0, heads = 0;

  bool of_itself() const { return query == key && key == value; }
  int64_t head() const { return embedding / heads; }
};

// The kernels of scaled dot product attention take it, unless there is a mask.
bool takes_fused_kernel(Session& s, const HeadsCall& a) {
  const Tensor query = by_heads(a.query, a.heads, a.head()), key = by_heads(a.key, a.heads, a.head()),
               value = by_heads(a.value, a.heads, a.head());
  if (a.mask.defined()) return false;
  const Tensor none;
  const AttentionChoice choice =
      choose_attention(s, {.query = query, .key = key, .value = value, .mask = none});
  return choice.taken != AttentionBackend::math;
}

Tensor attend_fused(Session& s, const HeadsCall& a) {
  const Tensor projected = linear(s, a.query, a.in_weight, a.in_bias);
  Results parts = call_all<"chunk">(s, projected, 3, -1);
  const Value::Tensors& chunks = parts.tensors();
  const Tensor query = by_heads(chunks[0], a.heads, a.head()), key = by_heads(chunks[1], a.heads, a.head()),
               value = by_heads(chunks[2], a.heads, a.head());
  const Tensor attended = call<"scaled_dot_product_attention">(s, query, key, value, Value(), 0.0, false);
  const Tensor rows = reshape(transpose(attended, 1, 2), Sizes{a.query.size(0), -1, a.embedding});
  return linear(s, rows, a.out_weight, a.out_bias);
}

// [batch, length, 3 · embedding].
Tensor project(Session& s, const HeadsCall& a) {
  if (a.of_itself()) return times_transposed(s, a.query, a.in_weight);
  if (a.key == a.value) {
    const Tensor query = times_transposed(s, a.query, narrow(a.in_weight, 0, 0, a.embedding));
    const Tensor both = times_transposed(s, a.key, narrow(a.in_weight, 0, a.embedding, 2 * a.embedding));
    return cat({query, both}, 2);
  }
  const Tensor query = times_transposed(s, a.query, narrow(a.in_weight, 0, 0, a.embedding));
  const Tensor key = times_transposed(s, a.key, narrow(a.in_weight, 0, a.embedding, a.embedding));
  const Tensor value = times_transposed(s, a.value, narrow(a.in_weight, 0, 2 * a.embedding, a.embedding));
  return cat({query, key, value}, 2);
}

// In place where there is no mask.
Tensor weights_of(Session& s, const Tensor& scores, const Tensor& mask, const Value& mask_type) {
  if (!mask.defined()) return call<"_softmax.out">(s, scores, scores.dim() - 1, false, scores);
  const Tensor of_booleans = to(mask, DType::b8);
  return call<"_masked_softmax">(s, scores, of_booleans, scores.dim() - 1, mask_type);
}

// The products one by one; the weighted values take the queries' place.
void attend_in_steps(Call& c, const HeadsCall& a, bool need_weights) {
  Session& s = c.session;
  Tensor projected = project(s, a);
  Results parts = call_all<"_transform_bias_rescale_qkv">(s, projected, a.in_bias, a.heads);
  projected = {};
  const Tensor query = parts[0], key = parts[1], value = parts[2];
  Tensor weights = bmm(as_batch(query), transpose(as_batch(key), 2, 1));
  weights = view(weights, Sizes{query.size(0), a.heads, query.size(2), key.size(2)});
  weights = weights_of(s, weights, a.mask, c["mask_type"]);
  const Tensor out = as_batch(query);
  const Tensor attended = view(call<"bmm.out">(s, as_batch(weights), as_batch(value), out), query.sizes());
  if (!need_weights) weights = {};
  {
    const Tensor rows = view(contiguous(permute(attended, Sizes{0, 2, 1, 3})),
                             Sizes{multiply(query.size(0), query.size(2)), a.embedding});
    const Tensor made = call<"addmm">(s, a.out_bias, rows, t(a.out_weight));
    c.result(view(made, Sizes{query.size(0), query.size(2), a.embedding}));
  }
  if (need_weights && c.boolean("average_attn_weights")) {
    weights = sum(weights, Sizes{1}, false);
    call<"div_.Scalar">(s, weights, a.heads);
  }
  weights.defined() ? c.result(weights) : c.no_output();
}

void heads_body(Call& c) {
  const HeadsCall a{.query = c.tensor("query"),
                    .key = c.tensor("key"),
                    .value = c.tensor("value"),
                    .in_weight = c.tensor("qkv_weight"),
                    .in_bias = c.tensor("qkv_bias"),
                    .out_weight = c.tensor("proj_weight"),
                    .out_bias = c.tensor("proj_bias"),
                    .mask = c.tensor("mask"),
                    .embedding = c.integer("embed_dim"),
                    .heads = c.integer("num_head")};
  if (a.query.dim() != 3)
    c.error(fmt::format("expects a query of batch, length and embedding, got {}", describe(a.query)));
  if (a.heads < 1 || a.embedding % a.heads != 0)
    c.error(fmt::format("{} heads do not divide an embedding of {}", a.heads, a.embedding));
  const bool need_weights = c.boolean("need_weights");
  if (c.on_cuda() && a.of_itself() && a.head() % 8 == 0 && !need_weights &&
      takes_fused_kernel(c.session, a)) {
    c.result(attend_fused(c.session, a));
    return c.no_output();
  }
  attend_in_steps(c, a, need_weights);
}

// Queries, keys and values lie one behind the other, each [batch, heads, length, head].
void transform_body(Call& c) {
  const Tensor &projected = c.tensor("qkv"), &bias = c.tensor("qkv_bias");
  const int64_t batch = projected.size(0), length = projected.size(1), heads = c.integer("num_heads"),
                embedding = projected.size(2) / 3, head = embedding / heads;
  const Tensor all =
      c.session.empty(Sizes{3, batch, heads, length, head}, projected.dtype(), projected.device());
  const Tensor rows = view(all, Sizes{3 * batch, heads, length, head});
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor part = narrow(rows, 0, i * batch, batch);
    copy_(part, by_heads(narrow(projected, 2, i * embedding, embedding), heads, head));
    call<"add_.Tensor">(c.session, part,
                        view(narrow(bias, 0, i * embedding, embedding), Sizes{heads, 1, head}));
    if (i == 0) call<"div_.Tensor">(c.session, part, std::sqrt(static_cast<double>(head)));
    c.result(part);
  }
}

// A kernel that holds a row takes 1024 elements at most; longer ones are filled and normalised as usual.
void masked_softmax_body(Call& c) {
  Session& s = c.session;
  const Tensor &self = c.tensor("self"), &mask = c.tensor("mask");
  if (c.on_cuda() && self.size(-1) <= 1024) {
    c.result(c.session.empty(self.sizes(), self.dtype(), self.device()));
    return;
  }
  Tensor wide = mask;
  if (mask.dim() == 2 && self.dim() == 4 && c.given("mask_type") && c.integer("mask_type") == 1)
    wide = view(mask, Sizes{mask.size(0), 1, 1, mask.size(1)});
  const Tensor filled = masked_fill(self, expand(wide, self.sizes()), -1.0 / 0.0);
  c.result(call<"softmax.int">(s, filled, self.dim() - 1));
}

Tensor normalised(Call& c, const Tensor& x, Name weight, Name bias) {
  return call<"layer_norm">(c.session, x, Sizes{c.integer("embed_dim")}, c.tensor(weight), c.tensor(bias),
                            c.real("eps"), true);
}

Tensor feed_forward(Call& c, const Tensor& x) {
  const Tensor &first = c.tensor("ffn_weight_1"), &second = c.tensor("ffn_weight_2");
  const Tensor rows = view(x, Sizes{multiply(x.size(0), x.size(1)), x.size(2)});
  const Tensor hidden = view(call<"_addmm_activation">(c.session, c.tensor("ffn_bias_1"), rows, t(first), 1,
                                                       1, c.boolean("use_gelu")),
                             Sizes{x.size(0), x.size(1), first.size(0)});
  const Tensor hidden_rows = view(hidden, Sizes{multiply(x.size(0), x.size(1)), first.size(0)});
  const Tensor made = call<"addmm">(c.session, c.tensor("ffn_bias_2"), hidden_rows, t(second));
  return view(made, Sizes{x.size(0), x.size(1), second.size(0)});
}

void encoder_layer_body(Call& c) {
  Session& s = c.session;
  const Tensor& source = c.tensor("src");
  if (source.dim() != 3)
    c.error(fmt::format("expects a source of batch, length and embedding, got {}", describe(source)));
  const bool norm_first = c.boolean("norm_first");
  Tensor x = norm_first ? normalised(c, source, "norm_weight_1", "norm_bias_1") : source;
  {
    Results attended = call_all<"_native_multi_head_attention">(
        s, x, x, x, c["embed_dim"], c["num_heads"], c["qkv_weight"], c["qkv_bias"], c["proj_weight"],
        c["proj_bias"], c["mask"], false, true, c["mask_type"]);
    x = attended[0];
  }
  call<"add_.Tensor">(s, x, source);
  if (!norm_first) x = normalised(c, x, "norm_weight_1", "norm_bias_1");
  const Tensor residual = x;
  if (norm_first) x = normalised(c, x, "norm_weight_2", "norm_bias_2");
  x = feed_forward(c, x);
  call<"add_.Tensor">(s, x, residual);
  if (!norm_first) x = normalised(c, x, "norm_weight_2", "norm_bias_2");
  c.result(x);
}

template <void (*body)(Call&)>
void without_history(Call& c) {
  const Scoped<bool> no_grad(c.session.modes.grad, false);
  body(c);
}

constexpr Op kEncoderLayer[] = {
    composite_of(
        "_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)",
        "adds the bias, scales queries, puts heads first", without_history<transform_body>,
        {"f32[2,3,24] f32[24] 2"}, {.takes = "qkv.dim == 3, num_heads > 0"}),
    composite_of("_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
                 "softmax of what the mask leaves", without_history<masked_softmax_body>,
                 {"f32[2,3,4,4] b8[2,3,4,4] 3 2"}),
    composite_of(
        "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, "
        "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool "
        "need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
        "attention with its projections", without_history<heads_body>,
        {"f32[2,3,8] f32[2,3,8] f32[2,3,8] 8 2 f32[24,8] f32[24] f32[8,8] f32[8]",
         "f32[2,3,8] f32[2,3,8] f32[2,3,8] 8 2 f32[24,8] f32[24] f32[8,8] f32[8] None False"}),
    composite_of("_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor "
                 "qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool "
                 "norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, "
                 "Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor "
                 "ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
                 "a whole layer: attention, feed forward, sums and norms",
                 without_history<encoder_layer_body>,
                 {"f32[2,3,8] 8 2 f32[24,8] f32[24] f32[8,8] f32[8] True False 1e-5 f32[8] f32[8] f32[8] "
                  "f32[8] f32[16,8] f32[16] f32[8,16] f32[8]"})};

}  // namespace

Tables encoder_layer_operators() {
  static constexpr Records tables[] = {kEncoderLayer};
  return tables;
}

}  // namespace metaprof
