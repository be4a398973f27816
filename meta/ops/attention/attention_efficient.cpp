// Memory-efficient attention (CUTLASS): aten/src/ATen/native/transformers/cuda/attention.cu,
// attention_backward.cu and mem_eff_attention/kernel_backward.h, PyTorch 2.11.

#include "core/rounding.h"
#include "meta/autograd/engine/backward.h"
#include "meta/ops/attention/attention.h"
#include "meta/ops/attention/family.h"
#include "meta/ops/attention/takes.h"
#include "meta/ops/rules/capture.h"
#include "meta/ops/rules/formulas.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

// [B,M,H,K] row-major, seen as [B,H,M,K]: the layout of what this implementation makes.
void by_position(Call& c, const Tensor& like, int64_t head_size) {
  const int64_t batch = like.size(0), heads = like.size(1), length = like.size(2);
  const Sizes sizes{batch, heads, length, head_size};
  c.output(sizes, Sizes{length * heads * head_size, head_size, heads * head_size, 1}, like.dtype());
}

// Philox seed and offset are on the device while a CUDA graph is captured, and where zeros stand for them.
bool seed_is_on_device(const Call& c) {
  if (is_capturing(c.session)) return true;
  return c.platform().framework.zeroes_seed_of_efficient_attention && c.real("dropout_p") == 0;
}

void efficient_forward_meta(Call& c) {
  const Tensor& query = c.tensor("query");
  by_position(c, query, c.tensor("value").size(3));
  // One number per row, rows rounded up to 32; none if no gradient is needed.
  const int64_t rows = c.boolean("compute_log_sumexp") ? align_up(query.size(2), 32) : 0;
  c.output(Sizes{query.size(0), query.size(1), rows}, DType::f32);
  const Device device = seed_is_on_device(c) ? query.device() : kHost;
  for (int scalar = 0; scalar < 2; ++scalar) c.output({}, {}, DType::i64, device);
}

// 16-bit heads beyond 128 do not fit into registers: the output is accumulated in memory (kernel_forward.h,
// kNeedsOutputAccumulatorBuffer).
constexpr int64_t kLargestHeadInRegisters = 128;

void efficient_forward_cuda(Call& c) {
  const Tensor& query = c.tensor("query");
  const int64_t head_size = c.tensor("value").size(3);
  c.allocate(2);
  c.allocate(3);
  c.allocate(0);
  c.allocate(1);
  Tensor accumulated;
  if (is_reduced_floating(query.dtype()) && head_size > kLargestHeadInRegisters)
    accumulated = c.temporary(Sizes{query.size(0), query.size(2), query.size(1), head_size}, DType::f32);
}

/// A compiled backward kernel: its tile of queries × keys, the largest head that it takes, the shared memory
/// that it needs in bytes (sizeof its SharedStorage, CUTLASS 3.9).
struct BackwardKernel {
  int queries, keys;
  int64_t largest_head;
  bool dropout;
  int64_t shared_memory;
  bool small_devices_only = false;  ///< compute capability 8.6 and 8.9

  bool outputs_in_registers(bool half) const { return half && largest_head <= queries; }
};

constexpr int64_t kAnyHead = 65536;

// In the order in which they are tried (mem_eff_attention/kernels/cutlassB.h). Variants for aligned sizes
// have the tiles of their neighbours and are left out.
constexpr BackwardKernel kHalf80[] = {
    {64, 64, 32, false, 40192},       {64, 64, 64, false, 44288},  {128, 64, 96, false, 91648, true},
    {128, 128, 128, false, 154112},   {64, 64, 128, false, 34048}, {128, 64, kAnyHead, false, 60928},
    {64, 64, kAnyHead, false, 34048}, {64, 64, 32, true, 40192},   {64, 64, 64, true, 52480},
    {128, 128, 128, true, 162304},    {64, 64, 128, true, 34048},  {128, 64, kAnyHead, true, 60928},
    {64, 64, kAnyHead, true, 34048},
};
constexpr BackwardKernel kFloat80[] = {
    {64, 64, 32, false, 53504},  {64, 64, 64, false, 53504},         {128, 64, 128, false, 121344},
    {64, 64, 128, false, 67840}, {128, 64, kAnyHead, false, 121344}, {64, 64, kAnyHead, false, 67840},
    {64, 64, 32, true, 53504},   {64, 64, 64, true, 53504},          {128, 64, 128, true, 121344},
    {64, 64, 128, true, 67840},  {128, 64, kAnyHead, true, 121344},  {64, 64, kAnyHead, true, 67840},
};
constexpr BackwardKernel kHalf75[] = {
    {64, 64, 32, false, 27904},  {64, 64, 64, false, 27904},        {128, 64, 128, false, 54784},
    {64, 64, 128, false, 27904}, {128, 64, kAnyHead, false, 54784}, {64, 64, kAnyHead, false, 27904},
    {64, 64, 32, true, 27904},   {64, 64, 64, true, 27904},         {128, 64, 128, true, 54784},
    {64, 64, 128, true, 27904},  {128, 64, kAnyHead, true, 54784},  {64, 64, kAnyHead, true, 27904},
};
constexpr BackwardKernel kFloat75[] = {
    {64, 64, 32, false, 37120},       {64, 64, 64, false, 37120},      {64, 64, 128, false, 37120},
    {64, 64, kAnyHead, false, 37120}, {64, 64, 32, true, 37120},       {64, 64, 64, true, 37120},
    {64, 64, 128, true, 37120},       {64, 64, kAnyHead, true, 37120},
};

std::span<const BackwardKernel> kernels_of(int sm, bool half) {
  if (sm >= 80) return half ? std::span<const BackwardKernel>(kHalf80) : kFloat80;
  return half ? std::span<const BackwardKernel>(kHalf75) : kFloat75;
}

// The first that the device runs; null: it runs none.
const BackwardKernel* first_kernel(const Hardware& device, int64_t head, bool half, bool dropout) {
  for (const BackwardKernel& kernel : kernels_of(device.sm, half)) {
    if (kernel.largest_head < head || (dropout && !kernel.dropout)) continue;
    if (kernel.small_devices_only && device.sm != 86 && device.sm != 89) continue;
    if (kernel.shared_memory <= device.shared_memory_per_block) return &kernel;
  }
  return nullptr;
}

const BackwardKernel& backward_kernel(const Call& c, int64_t head, bool half, bool dropout) {
  const BackwardKernel* kernel =
      c.ask([=](const Platform& platform) { return first_kernel(platform.hardware, head, half, dropout); });
  if (!kernel) c.error("no kernel takes heads of this size on this device");
  return *kernel;
}

// What the kernel accumulates in memory: dQ always (with a lock and a counter per tile, padded to 16 bytes),
// dK and dV where they neither fit into registers nor can be added up in the result.
struct Extent {
  int64_t batch, heads, length, keys, head, value_head;
};

int64_t workspace_bytes(const Extent& of, bool half, const BackwardKernel& kernel) {
  const auto& [batch, heads, length, keys, head, value_head] = of;
  const int64_t tile = 16 + int64_t{kernel.queries} * kernel.keys * 4;
  const int64_t dq = multiply(divide_up(length, kernel.queries), divide_up(head, kernel.keys) * tile) / 4;
  int64_t dkv = 0;
  if (half && !kernel.outputs_in_registers(half)) {
    const int64_t splits =
        std::max<int64_t>(1, std::min(divide_up(keys, kernel.keys), 200 / (batch * heads)));
    dkv = splits * kernel.keys * (align_up(head, kernel.queries) + align_up(value_head, kernel.queries));
  }
  return multiply(batch * heads, multiply(align_up(dkv + dq, 4), 4));
}

void efficient_backward_meta(Call& c) {
  const Tensor &query = c.tensor("query"), &key = c.tensor("key"), &value = c.tensor("value");
  by_position(c, query, query.size(3));
  by_position(c, key, key.size(3));
  by_position(c, value, value.size(3));
  const Tensor& bias = c.tensor("attn_bias");
  if (!bias.defined() || !c["grad_input_mask"].booleans()[3]) return c.no_output();
  // Rows of the bias gradient are padded to 16 elements.
  Sizes padded = bias.sizes();
  padded.back() = align_up(padded.back(), 16);
  c.output(bias.sizes(), contiguous_strides(padded), bias.dtype());
}

// Σ grad · output over a head, [B,H,M], of tensors [B,M,H,K]: the 16-bit kernels compute it themselves.
Tensor row_sums(Call& c, const Tensor& grad, const Tensor& out, bool half) {
  if (half) return c.temporary(Sizes{grad.size(0), grad.size(2), grad.size(1)}, DType::f32);
  const Tensor product = mul(grad, out);
  const Tensor sums = sum(product, Sizes{-1}, false);
  return contiguous(transpose(sums, -2, -1));
}

void efficient_backward_cuda(Call& c) {
  const Tensor& query = c.tensor("query");
  const bool half = is_reduced_floating(query.dtype());
  const Tensor grad = c.contiguous(transpose(c.tensor("grad_out_"), 1, 2));
  for (size_t i = 0; i < 3; ++i) c.allocate(i);
  if (c.results[3].is_tensor()) {
    const Tensor& bias = c.results[3].tensor();
    const Sizes padded{bias.size(0), bias.size(1), bias.size(2), bias.strides()[2]};
    c.allocate(3, numel(padded) * element_size(bias.dtype()));
  }
  // Gradients of grouped keys and values are made for every head of the queries, then summed.
  Tensor all_keys, all_values;
  if (c.tensor("key").size(1) != query.size(1)) {
    const auto for_all_heads = [&](const Tensor& t) {
      return c.temporary(Sizes{t.size(0), t.size(2), query.size(1), t.size(3)}, t.dtype());
    };
    all_keys = for_all_heads(c.tensor("key"));
    all_values = for_all_heads(c.tensor("value"));
  }
  const int64_t head = std::max(query.size(3), c.tensor("value").size(3));
  const BackwardKernel& kernel = backward_kernel(c, head, half, c.real("dropout_p") > 0);
  Ref<Storage> workspace;
  const Tensor delta = row_sums(c, grad, transpose(c.tensor("out"), 1, 2), half);
  const Extent extent{.batch = query.size(0),
                      .heads = query.size(1),
                      .length = query.size(2),
                      .keys = c.tensor("key").size(2),
                      .head = query.size(3),
                      .value_head = c.tensor("value").size(3)};
  workspace = c.temporary_bytes(workspace_bytes(extent, half, kernel), Category::workspace);
}

Gradients efficient_gradients(Backward& b) {
  Value::Booleans mask{b.wants("query"), b.wants("key"), b.wants("value"), b.wants("attn_bias")};
  Results all = call_all<"_scaled_dot_product_efficient_attention_backward">(
      b.session, b.grad(), b("query"), b("key"), b("value"), b("attn_bias"), b("output"), b("log_sumexp"),
      b("philox_seed"), b("philox_offset"), b["dropout_p"], std::move(mask), b["is_causal"], b["scale"]);
  Gradients out;
  for (Value& value : all.list()) out.push_back(value.take_tensor());
  return out;
}

// --- [batch, length, heads, size of a head]; where sequences stand one behind the other the batch is 1, and the call says
// where each begins and how long the longest one is

Extent extent_of(const Call& c, Name begins, Name longest_query, Name longest_key) {
  const Tensor &query = c.tensor("query"), &key = c.tensor("key");
  Extent extent{query.size(0), query.size(2), query.size(1),
                key.size(1),   query.size(3), c.tensor("value").size(3)};
  if (!c.given(begins)) return extent;
  extent.batch = c.tensor(begins).size(0) - 1;
  if (c.given(longest_query)) extent.length = c.integer(longest_query);
  if (c.given(longest_key)) extent.keys = c.integer(longest_key);
  return extent;
}

Extent forward_extent(const Call& c) { return extent_of(c, "cu_seqlens_q", "max_seqlen_q", "max_seqlen_k"); }

void packed_efficient_meta(Call& c) {
  const Tensor& query = c.tensor("query");
  const Extent extent = forward_extent(c);
  c.output(Sizes{query.size(0), query.size(1), query.size(2), extent.value_head}, query.dtype());
  const int64_t rows = c.boolean("compute_log_sumexp") ? align_up(extent.length, 32) : 0;
  c.output(Sizes{extent.batch, extent.heads, rows}, DType::f32);
  const Device device = seed_is_on_device(c) ? query.device() : kHost;
  for (int scalar = 0; scalar < 2; ++scalar) c.output({}, {}, DType::i64, device);
  c.result(extent.length);
  c.result(extent.keys);
}

void packed_efficient_cuda(Call& c) {
  const Tensor &query = c.tensor("query"), &out = c.results[0].tensor();
  c.allocate(2);
  c.allocate(3);
  c.allocate(0);
  c.allocate(1);
  Tensor accumulated;
  if (is_reduced_floating(query.dtype()) && out.size(3) > kLargestHeadInRegisters)
    accumulated = c.temporary(out.sizes(), DType::f32);
}

void packed_efficient_backward_meta(Call& c) {
  for (Name name : {Name("query"), Name("key"), Name("value")})
    c.output(c.tensor(name).sizes(), c.tensor(name).dtype());
  const Tensor& bias = c.tensor("bias");
  if (!bias.defined() || !c.boolean("bias_requires_grad")) return c.no_output();
  Sizes padded = bias.sizes();
  padded.back() = align_up(padded.back(), 16);
  c.output(bias.sizes(), contiguous_strides(padded), bias.dtype());
}

void packed_efficient_backward_cuda(Call& c) {
  const Tensor& query = c.tensor("query");
  const bool half = is_reduced_floating(query.dtype());
  const Tensor grad = c.contiguous(c.tensor("grad_out_"));
  c.allocate_all();
  const Extent extent = extent_of(c, "cu_seqlens_q", "max_seqlen_q", "max_seqlen_k");
  const BackwardKernel& kernel =
      backward_kernel(c, std::max(extent.head, extent.value_head), half, c.real("dropout_p") > 0);
  const Tensor delta = row_sums(c, grad, c.tensor("out"), half);
  const Ref<Storage> workspace =
      c.temporary_bytes(workspace_bytes(extent, half, kernel), Category::workspace);
}

Gradients packed_efficient_gradients(Backward& b) {
  const auto longest = [&](Name told, Name of) {
    return b[told].is_none() ? b.sizes(of)[1] : b[told].integer();
  };
  Results all = call_all<"_efficient_attention_backward">(
      b.session, b.grad(), b("query"), b("key"), b("value"), b("bias"), b("output"), b("cu_seqlens_q"),
      b("cu_seqlens_k"), longest("max_seqlen_q", "query"), longest("max_seqlen_k", "key"), b("logsumexp"),
      b["dropout_p"], b("philox_seed"), b("philox_offset"), b["custom_mask_type"], b.wants("bias"),
      b["scale"]);
  Gradients out;
  for (Value& value : all.list()) out.push_back(value.take_tensor());
  return out;
}

// How long each sequence is nobody knows but the device: as if each query met as many keys as the longest one has.
int64_t most_pairs_of_rows(const Call& c) {
  const Tensor &query = c.tensor("query"), &key = c.tensor("key");
  const int64_t longest =
      c.given("cu_seqlens_q") && c.given("max_seqlen_k") ? c.integer("max_seqlen_k") : key.size(1);
  return multiply(multiply(query.size(0), query.size(1)),
                  multiply(query.size(2), longest > 0 ? longest : key.size(1)));
}

FlopCount packed_efficient_flops(const Call& c) {
  return {.counted =
              2 * multiply(most_pairs_of_rows(c), c.tensor("query").size(3) + c.tensor("value").size(3))};
}

FlopCount packed_efficient_backward_flops(const Call& c) {
  return {.counted = 2 * multiply(most_pairs_of_rows(c),
                                  3 * c.tensor("query").size(3) + 2 * c.tensor("value").size(3))};
}

constexpr Op kEfficientAttention[] = {
    {.schema = "_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? "
               "attn_bias, bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, *, float? "
               "scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)",
     .summary = "softmax(scale · query · keyᵀ + bias) · value, tile by tile",
     .meta = efficient_forward_meta,
     .host_code = {{DeviceType::cuda, efficient_forward_cuda}},
     .derivatives = {{{"query", "key", "value", "attn_bias"},
                      {"query", "key", "value", "attn_bias", "output", "log_sumexp", "philox_seed",
                       "philox_offset"},
                      efficient_gradients}},
     .flops = attention_flops,
     .examples = {"f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8] None True"},
     .facts = {.takes = kHeadsOfForward,
               .random = true,
               .kernel = Kernel::attention,
               .no_gradient_for = {"log_sumexp", "philox_seed", "philox_offset"}}},
    {.schema = "_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, "
               "Tensor value, Tensor attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor "
               "philox_offset, float dropout_p, bool[4] grad_input_mask, bool is_causal=False, *, float? "
               "scale=None) -> (Tensor, Tensor, Tensor, Tensor)",
     .summary = "gradients of query, key, value and bias",
     .meta = efficient_backward_meta,
     .host_code = {{DeviceType::cuda, efficient_backward_cuda}},
     .derivatives = not_differentiable,
     .flops = attention_backward_flops,
     .examples = {"f32[2,3,4,8] f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8] None f32[2,3,4,8] f32[2,3,32] i64[] "
                  "i64[] 0.0 (True True True False)"},
     .facts = {.takes = kHeadsOfEfficientBackward, .kernel = Kernel::attention}},
    {.schema = "_efficient_attention_forward(Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor? "
               "cu_seqlens_q, Tensor? cu_seqlens_k, SymInt? max_seqlen_q, SymInt? max_seqlen_k, float "
               "dropout_p, int custom_mask_type, bool compute_log_sumexp=False, *, float? scale=None, "
               "Tensor? seqlen_k=None, int? window_size=None) -> (Tensor output, Tensor logsumexp, Tensor "
               "philox_seed, Tensor philox_offset, SymInt max_seqlen_batch_q, SymInt max_seqlen_batch_k)",
     .summary =
         "softmax(scale · query · keyᵀ + bias) · value, tile by tile, for sequences one behind the other",
     .meta = packed_efficient_meta,
     .host_code = {{DeviceType::cuda, packed_efficient_cuda}},
     .derivatives = {{{"query", "key", "value", "bias"},
                      {"query", "key", "value", "bias", "output", "logsumexp", "philox_seed", "philox_offset",
                       "cu_seqlens_q", "cu_seqlens_k"},
                      packed_efficient_gradients}},
     .flops = packed_efficient_flops,
     .examples = {"f32[1,7,3,8] f32[1,7,3,8] f32[1,7,3,8] None i32[3] i32[3] 4 4 0.0 0 True"},
     .facts = {.takes = kHeadsOfForward,
               .node = "EfficientAttentionBackward0",
               .random = true,
               .product = true,
               .kernel = Kernel::attention,
               .no_gradient_for = {"logsumexp", "philox_seed", "philox_offset"}}},
    {.schema =
         "_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value, Tensor? "
         "bias, Tensor out, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, SymInt max_seqlen_q, SymInt "
         "max_seqlen_k, Tensor logsumexp, float dropout_p, Tensor philox_seed, Tensor philox_offset, int "
         "custom_mask_type, bool bias_requires_grad, *, float? scale=None, int? num_splits_key=None, int? "
         "window_size=None, bool shared_storage_dqdkdv=False) -> (Tensor, Tensor, Tensor, Tensor)",
     .summary = "gradients of query, key, value and bias",
     .meta = packed_efficient_backward_meta,
     .host_code = {{DeviceType::cuda, packed_efficient_backward_cuda}},
     .derivatives = not_differentiable,
     .flops = packed_efficient_backward_flops,
     .examples = {"f32[1,7,3,8] f32[1,7,3,8] f32[1,7,3,8] f32[1,7,3,8] None f32[1,7,3,8] i32[3] i32[3] 4 4 "
                  "f32[2,3,32] 0.0 i64[] i64[] 0 False"},
     .facts = {.takes = kRowsOfEfficientBackward, .kernel = Kernel::attention}}};

}  // namespace

Tables efficient_attention_operators() {
  static constexpr Records tables[] = {kEfficientAttention};
  return tables;
}

}  // namespace metaprof
