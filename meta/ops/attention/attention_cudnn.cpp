// cuDNN's attention (aten/src/ATen/native/cudnn/MHA.cpp, PyTorch 2.11 with cuDNN's frontend).

#include <numeric>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/attention/attention.h"
#include "meta/ops/attention/family.h"
#include "meta/ops/attention/takes.h"
#include "meta/ops/rules/formulas.h"
#include "meta/platform/planned_workspaces.h"

namespace metaprof {
namespace {

// The order of the query's dimensions, for other sizes (MHA.cpp, alloc_with_matching_layout).
Sizes strides_in_order_of(const Tensor& query, SizesView sizes) {
  SmallVector<size_t, 4> order{0, 1, 2, 3};
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return query.strides()[a] < query.strides()[b]; });
  Sizes strides(4);
  int64_t step = 1;
  for (size_t d : order) {
    strides[d] = step;
    step *= sizes[d];
  }
  return strides;
}

void cudnn_forward_meta(Call& c) {
  const Tensor &query = c.tensor("query"), &value = c.tensor("value");
  const int64_t batch = query.size(0), heads = query.size(1), length = query.size(2);
  if (value.size(3) == query.size(3)) {
    c.output_like(query);
  } else {
    const Sizes sizes{batch, heads, length, value.size(3)};
    c.output(sizes, strides_in_order_of(query, sizes), query.dtype());
  }
  if (c.boolean("compute_log_sumexp")) {
    c.output(Sizes{batch, heads, length, 1}, DType::f32);
  } else {
    c.no_output();
  }
  c.no_output();
  c.no_output();
  c.result(length);
  c.result(c.tensor("key").size(2));
  c.output({}, DType::i64);  // seed and offset are on the device, with or without dropout
  c.output({}, DType::i64);
  c.no_output();
}

// What both directions hand to the library.
AttentionPlan attention_plan(const Call& c, bool backward) {
  const Tensor &query = c.tensor("query"), &key = c.tensor("key"), &value = c.tensor("value");
  AttentionPlan plan{.backward = backward,
                     .batch = query.size(0),
                     .heads = query.size(1),
                     .key_heads = key.size(1),
                     .query_length = query.size(2),
                     .key_length = key.size(2),
                     .width = query.size(3),
                     .value_width = value.size(3),
                     .dtype = query.dtype(),
                     .causal = c.boolean("is_causal"),
                     .statistics = true,
                     .dropout = c.real("dropout_p"),
                     .bias = {},
                     .q_strides = query.strides(),
                     .k_strides = key.strides(),
                     .v_strides = value.strides(),
                     .o_strides = {},
                     .grad_strides = {}};
  if (const Tensor& bias = c.tensor("attn_bias"); bias.defined()) plan.bias = bias.sizes();
  return plan;
}

// Working memory of cuDNN's plan, decided inside the closed library, and its frontend's.
Ref<Storage> attention_workspace(Call& c, const AttentionPlan& plan) {
  PlannedWorkspaces* planned = c.session.planned_workspaces;
  const int64_t bytes = planned ? planned->attention(plan, c.platform()) : attention_frontend_bytes(plan);
  return c.temporary_bytes(bytes, Category::workspace);
}

void cudnn_forward_cuda(Call& c) {
  c.allocate(6);
  c.allocate(7);
  c.allocate(0);
  c.allocate(1);
  AttentionPlan plan = attention_plan(c, false);
  plan.statistics = c.boolean("compute_log_sumexp");
  plan.o_strides = c.result_tensor().strides();
  const Ref<Storage> workspace = attention_workspace(c, plan);
}

void cudnn_backward_meta(Call& c) {
  for (Name name : {Name("query"), Name("key"), Name("value")}) c.output_like(c.tensor(name));
}

void cudnn_backward_cuda(Call& c) {
  const Tensor& given = c.tensor("grad_out");
  c.allocate_all();
  Tensor grad = given;
  if (given.strides().back() != 1 && given.size(3) != 1) grad = clone(given, MemoryFormat::contiguous);
  AttentionPlan plan = attention_plan(c, true);
  plan.o_strides = c.tensor("out").strides();
  plan.grad_strides = grad.strides();
  const Ref<Storage> workspace = attention_workspace(c, plan);
}

Gradients cudnn_gradients(Backward& b) {
  const int64_t none = 0;
  Results all = call_all<"_scaled_dot_product_cudnn_attention_backward">(
      b.session, b.grad(), b("query"), b("key"), b("value"), b("output"), b("logsumexp"), b("philox_seed"),
      b("philox_offset"), b("attn_bias"), Value(), Value(), none, none, b["dropout_p"], b["is_causal"],
      b["scale"]);
  return {all[0], all[1], all[2]};
}

constexpr Op kCudnnAttention[] = {
    {.schema =
         "_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, "
         "bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, "
         "*, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, "
         "SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
     .summary = "softmax(scale · query · keyᵀ + bias) · value in one cuDNN plan, 16-bit",
     .meta = cudnn_forward_meta,
     .host_code = {{DeviceType::cuda, cudnn_forward_cuda}},
     .derivatives = {{{"query", "key", "value"},
                      {"query", "key", "value", "attn_bias", "output", "logsumexp", "philox_seed",
                       "philox_offset", "cum_seq_q", "cum_seq_k"},
                      cudnn_gradients}},
     .flops = attention_flops,
     .examples = {"bf16[2,3,4,8] bf16[2,3,5,8] bf16[2,3,5,8] None True"},
     .facts = {.takes = kHeadsOfForward,
               .random = true,
               .kernel = Kernel::attention,
               .no_gradient_for = {"logsumexp", "cum_seq_q", "cum_seq_k", "max_q", "max_k", "philox_seed",
                                   "philox_offset", "debug_attn_mask"}}},
    {.schema = "_scaled_dot_product_cudnn_attention_backward(Tensor grad_out, Tensor query, Tensor key, "
               "Tensor value, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, Tensor "
               "attn_bias, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, "
               "bool is_causal, *, float? scale=None) -> (Tensor, Tensor, Tensor)",
     .summary = "gradients of query, key and value",
     .meta = cudnn_backward_meta,
     .host_code = {{DeviceType::cuda, cudnn_backward_cuda}},
     .derivatives = not_differentiable,
     .flops = attention_backward_flops,
     .examples = {"bf16[2,3,4,8] bf16[2,3,4,8] bf16[2,3,5,8] bf16[2,3,5,8] bf16[2,3,4,8] f32[2,3,4,1] i64[] "
                  "i64[] None None None 4 5 0.0 False"},
     .facts = {.takes = kHeadsOfCudnnBackward, .kernel = Kernel::attention}}};

}  // namespace

Tables cudnn_attention_operators() {
  static constexpr Records tables[] = {kCudnnAttention};
  return tables;
}

}  // namespace metaprof
