// FlashAttention 2 (aten/src/ATen/native/transformers/cuda/attention.cu and flash_attn/flash_api.cpp,
// PyTorch 2.11), on the GPU and, under the same name, the CPU's own.

#include <cmath>

#include "core/rounding.h"
#include "meta/autograd/engine/backward.h"
#include "meta/ops/attention/attention.h"
#include "meta/ops/attention/family.h"
#include "meta/ops/attention/takes.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

int64_t rounded_head(int64_t head) { return head <= 192 ? align_up(head, 32) : 256; }

// Into how many parts the keys are split so that few rows of queries fill the device
// (flash_api.cpp, num_splits_heuristic).
int64_t key_splits(const Hardware& device, int64_t rows, int64_t blocks) {
  const int64_t slots = int64_t{2} * device.multiprocessors;  // a thread block has 128 threads
  if (double(rows) >= 0.8 * double(slots)) return 1;
  const int64_t most = std::min({int64_t{128}, slots, blocks});
  auto is_eligible = [&](int64_t n) { return n == 1 || divide_up(blocks, n) != divide_up(blocks, n - 1); };
  auto efficiency = [&](int64_t n) {
    const float waves = float(rows * n) / float(slots);
    return waves / std::ceil(waves);
  };
  float best = 0;
  for (int64_t n = 1; n <= most; ++n)
    if (is_eligible(n)) best = std::max(best, efficiency(n));
  for (int64_t n = 1; n <= most; ++n)
    if (is_eligible(n) && efficiency(n) >= 0.85f * best) return n;
  return 1;
}

void flash_forward_meta(Call& c) {
  const Tensor& query = c.tensor("query");
  // empty_like of the transposed query: its order of dimensions.
  c.output_like(query);
  c.output(Sizes{query.size(0), query.size(1), query.size(2)}, DType::f32);
  c.no_output();
  c.no_output();
  c.result(query.size(2));
  c.result(c.tensor("key").size(2));
  if (c.platform().framework.flash_random_state_on_device) {
    c.output(Sizes{2}, DType::u64);
    c.output({}, DType::u64);
  } else {
    for (int scalar = 0; scalar < 2; ++scalar) c.output({}, {}, DType::i64, kHost);  // seed and offset
  }
  c.output(Sizes{0}, query.dtype());
}

// `state`: which result is the random state. `may_split`: whether keys may be split.
void allocate_forward(Call& c, int64_t batch, int64_t heads, int64_t length, int64_t keys, int64_t head,
                      size_t state, bool may_split) {
  c.allocate(0);
  c.allocate(1);
  const bool dropout = c.real("dropout_p") > 0;
  Tensor sums, outputs;
  if (!dropout && may_split) {
    const int64_t block = head <= 64 ? 256 : head <= 128 ? 128 : 64;
    const int64_t rows = batch * heads * divide_up(length, 64), blocks = divide_up(keys, block);
    const int64_t splits =
        c.ask([=](const Platform& platform) { return key_splits(platform.hardware, rows, blocks); });
    if (splits > 1) {
      sums = c.temporary(Sizes{splits, batch, heads, length}, DType::f32);
      outputs = c.temporary(Sizes{splits, batch, heads, length, rounded_head(head)}, DType::f32);
    }
  }
  // With dropout the random state is made anew once the numbers are drawn.
  Tensor first_state;
  if (dropout && c.platform().framework.flash_random_state_on_device) {
    first_state = c.temporary(Sizes{2}, DType::u64);
  } else {
    c.allocate(state);
  }
  c.allocate(state + 1);
  c.allocate_all();
  first_state.reset();
  sums.reset();
}

void flash_forward_cuda(Call& c) {
  const Tensor& query = c.tensor("query");
  constexpr size_t kState = 6;
  allocate_forward(c, query.size(0), query.size(1), query.size(2), c.tensor("key").size(2), query.size(3),
                   kState, true);
}

void flash_backward_meta(Call& c) {
  for (Name name : {Name("query"), Name("key"), Name("value")}) c.output_like(c.tensor(name));
}

void flash_backward_cuda(Call& c) {
  const Tensor &query = c.tensor("query"), &key = c.tensor("key");
  const int64_t batch = query.size(0), heads = query.size(1), length = query.size(2), head = query.size(3);
  const Tensor grad = c.contiguous(transpose(c.tensor("grad_out"), 1, 2));
  const Tensor out = c.contiguous(transpose(c.tensor("out"), 1, 2));
  c.allocate_all();
  const int64_t rows = align_up(length, 128);
  const Tensor sums = c.temporary(Sizes{batch, heads, rows}, DType::f32);
  const Tensor dq = c.temporary(Sizes{batch, rows, heads, rounded_head(head)}, DType::f32);
  if (key.size(1) == heads) return;
  // Fewer heads of keys: their flash_gradients are made for all heads of queries, then summed.
  const Sizes expanded{batch, key.size(2), heads, head};
  const Tensor dk = c.temporary(expanded, query.dtype()), dv = c.temporary(expanded, query.dtype());
}

Gradients flash_gradients(Backward& b) {
  const int64_t none = 0;
  Results all = call_all<"_scaled_dot_product_flash_attention_backward">(
      b.session, b.grad(), b("query"), b("key"), b("value"), b("output"), b("logsumexp"), Value(), Value(),
      none, none, b["dropout_p"], b["is_causal"], b("rng_state"), b("unused"), b["scale"]);
  return {all[0], all[1], all[2]};
}

// --- sequences one behind the other: [rows, heads, size of a head], and where each begins; or [batch, length, heads, …]

bool is_packed(const Call& c) { return c.given("cum_seq_q"); }

// Every sequence has room for a tile more (flash_api.cpp, mha_varlen_bwd).
constexpr int64_t kRowsOfTile = 128;

void packed_forward_meta(Call& c) {
  const Tensor& query = c.tensor("query");
  c.output_like(query);
  if (is_packed(c))
    c.output(Sizes{query.size(1), query.size(0)}, DType::f32);
  else
    c.output(Sizes{query.size(0), query.size(2), query.size(1)}, DType::f32);
  if (c.platform().framework.flash_random_state_on_device) {
    c.output(Sizes{2}, DType::u64);
    c.output({}, DType::u64);
  } else {
    for (int scalar = 0; scalar < 2; ++scalar) c.output({}, {}, DType::i64, kHost);  // seed and offset
  }
  c.output(Sizes{0}, query.dtype());
}

void packed_forward_cuda(Call& c) {
  const Tensor &query = c.tensor("query"), &key = c.tensor("key");
  constexpr size_t kState = 2;
  if (is_packed(c)) return allocate_forward(c, 0, 0, 0, 0, 0, kState, false);
  allocate_forward(c, query.size(0), query.size(2), query.size(1), key.size(1), query.size(3), kState, true);
}

void packed_backward_cuda(Call& c) {
  const Tensor &query = c.tensor("query"), &key = c.tensor("key");
  const Tensor grad = c.contiguous(c.tensor("grad_out"));
  const Tensor out = c.contiguous(c.tensor("out"));
  c.allocate_all();
  const int64_t heads = query.size(-2), head = query.size(-1);
  const Tensor& begins = c.tensor("cum_seq_q");
  const bool packed = begins.defined();
  const int64_t sequences = packed ? begins.size(0) - 1 : query.size(0);
  const int64_t rows =
      packed ? query.size(0) + kRowsOfTile * sequences : sequences * align_up(query.size(1), kRowsOfTile);
  const Tensor sums = c.temporary(Sizes{heads, rows}, DType::f32);
  const Tensor dq = c.temporary(Sizes{rows, heads, rounded_head(head)}, DType::f32);
  if (key.size(-2) == heads) return;
  Sizes expanded = key.sizes();
  expanded[expanded.size() - 2] = heads;
  const Tensor dk = c.temporary(expanded, query.dtype()), dv = c.temporary(expanded, query.dtype());
}

Gradients packed_gradients(Backward& b) {
  Results all = call_all<"_flash_attention_backward">(
      b.session, b.grad(), b("query"), b("key"), b("value"), b("output"), b("softmax_logsumexp"),
      b("cum_seq_q"), b("cum_seq_k"), b["max_q"], b["max_k"], b["dropout_p"], b["is_causal"], b("rng_state"),
      b("unused"), b["scale"], b["window_size_left"], b["window_size_right"]);
  return {all[0], all[1], all[2]};
}

// How long each sequence is nobody knows but the device: as if each query met as many keys as the longest one has.
int64_t most_pairs(const Call& c) {
  const Tensor &query = c.tensor("query"), &key = c.tensor("key");
  if (!c.given("cum_seq_q"))
    return multiply(multiply(query.size(0), query.size(2)), multiply(query.size(1), key.size(1)));
  const int64_t longest = c.integer("max_k");
  return multiply(multiply(query.size(1), query.size(0)), longest > 0 ? longest : key.size(0));
}

FlopCount packed_flops(const Call& c) {
  return {.counted = 2 * multiply(most_pairs(c), c.tensor("query").size(-1) + c.tensor("value").size(-1))};
}

FlopCount packed_backward_flops(const Call& c) {
  return {.counted =
              2 * multiply(most_pairs(c), 3 * c.tensor("query").size(-1) + 2 * c.tensor("value").size(-1))};
}

// --- the CPU's

void cpu_meta(Call& c) {
  const Tensor& query = c.tensor("query");
  const int64_t batch = query.size(0), heads = query.size(1), length = query.size(2);
  c.output(query.sizes(), dense_strides_like(query.sizes(), query.strides()), query.dtype());
  // Made by position, seen by head.
  c.output(Sizes{batch, heads, length}, Sizes{heads * length, 1, heads}, accumulate_type(query.dtype()));
}

void cpu_backward_meta(Call& c) {
  for (Name name : {Name("query"), Name("key"), Name("value")}) {
    const Tensor& of = c.tensor(name);
    const int64_t heads = of.size(1), length = of.size(2), head = of.size(3);
    c.output(of.sizes(), Sizes{heads * length * head, head, heads * head, 1}, of.dtype());
  }
}

Gradients cpu_gradients(Backward& b) {
  Results all = call_all<"_scaled_dot_product_flash_attention_for_cpu_backward">(
      b.session, b.grad(), b("query"), b("key"), b("value"), b("output"), b("logsumexp"), b["dropout_p"],
      b["is_causal"], b("attn_mask"), b["scale"]);
  return {all[0], all[1], all[2]};
}

// The framework's counter knows the GPU's operators only.
template <FlopCount (*count)(const Call&)>
FlopCount uncounted(const Call& c) {
  return {.own = count(c).counted};
}

constexpr Op kFlashAttention[] = {
    {.schema = "_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float "
               "dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> "
               "(Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt "
               "max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)",
     .summary = "softmax(scale · query · keyᵀ) · value, tile by tile, 16-bit",
     .meta = flash_forward_meta,
     .host_code = {{DeviceType::cuda, flash_forward_cuda}},
     .derivatives = {{{"query", "key", "value"},
                      {"query", "key", "value", "output", "logsumexp", "rng_state", "unused", "cum_seq_q",
                       "cum_seq_k"},
                      flash_gradients}},
     .flops = attention_flops,
     .examples = {"bf16[2,3,4,8] bf16[2,3,5,8] bf16[2,3,5,8]"},
     .facts = {.takes = kHeadsOfForward,
               .random = true,
               .autocast = Autocast::lower_precision,
               .product = true,
               .kernel = Kernel::attention,
               .no_gradient_for = {"logsumexp", "cum_seq_q", "cum_seq_k", "max_q", "max_k", "rng_state",
                                   "unused", "debug_attn_mask"}}},
    {.schema =
         "_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor "
         "value, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt "
         "max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, float? "
         "scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
     .summary = "gradients of query, key and value",
     .meta = flash_backward_meta,
     .host_code = {{DeviceType::cuda, flash_backward_cuda}},
     .derivatives = not_differentiable,
     .flops = attention_backward_flops,
     .examples = {"bf16[2,3,4,8] bf16[2,3,4,8] bf16[2,3,5,8] bf16[2,3,5,8] bf16[2,3,4,8] f32[2,3,4] None "
                  "None 4 5 0.0 False u64[2] u64[]"},
     .facts = {.takes = kHeadsOfFlashBackward, .kernel = Kernel::attention}},
    {.schema = "_flash_attention_forward(Tensor query, Tensor key, Tensor value, Tensor? cum_seq_q, Tensor? "
               "cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, bool "
               "return_debug_mask, *, float? scale=None, SymInt? window_size_left=None, SymInt? "
               "window_size_right=None, Tensor? seqused_k=None, Tensor? alibi_slopes=None) -> (Tensor "
               "output, Tensor softmax_logsumexp, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)",
     .summary =
         "softmax(scale · query · keyᵀ) · value, tile by tile, 16-bit, for sequences one behind the other",
     .meta = packed_forward_meta,
     .host_code = {{DeviceType::cuda, packed_forward_cuda}},
     .derivatives = {{{"query", "key", "value"},
                      {"query", "key", "value", "output", "softmax_logsumexp", "rng_state", "unused",
                       "cum_seq_q", "cum_seq_k"},
                      packed_gradients}},
     .flops = packed_flops,
     .examples = {"bf16[7,3,8] bf16[7,3,8] bf16[7,3,8] i32[3] i32[3] 4 4 0.0 False False",
                  "bf16[2,4,3,8] bf16[2,5,3,8] bf16[2,5,3,8] None None 4 5 0.0 False False"},
     .facts = {.takes = kRowsOfForward,
               .node = "FlashAttentionBackward0",
               .random = true,
               .product = true,
               .kernel = Kernel::attention,
               .no_gradient_for = {"softmax_logsumexp", "rng_state", "unused", "debug_attn_mask"}}},
    {.schema = "_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor "
               "out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float "
               "dropout_p, bool is_causal, Tensor rng_state, Tensor unused, *, float? scale=None, SymInt? "
               "window_size_left=None, SymInt? window_size_right=None) -> (Tensor, Tensor, Tensor)",
     .summary = "gradients of query, key and value",
     .meta = flash_backward_meta,
     .host_code = {{DeviceType::cuda, packed_backward_cuda}},
     .derivatives = not_differentiable,
     .flops = packed_backward_flops,
     .examples = {"bf16[7,3,8] bf16[7,3,8] bf16[7,3,8] bf16[7,3,8] bf16[7,3,8] f32[3,7] i32[3] i32[3] 4 4 "
                  "0.0 False u64[2] u64[]"},
     .facts = {.takes = kRowsOfBackward, .kernel = Kernel::attention}},
    {.schema = "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float "
               "dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> "
               "(Tensor output, Tensor logsumexp)",
     .summary = "softmax(scale · query · keyᵀ + mask) · value, tile by tile, on the CPU",
     .meta = cpu_meta,
     .derivatives = {{{"query", "key", "value"},
                      {"query", "key", "value", "output", "logsumexp", "attn_mask"},
                      cpu_gradients}},
     .flops = uncounted<attention_flops>,
     .examples = {"f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8]"},
     .facts = {.takes = kHeadsOfForward, .kernel = Kernel::attention, .no_gradient_for = {"logsumexp"}}},
    {.schema =
         "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, "
         "Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? "
         "attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
     .summary = "gradients of query, key and value",
     .meta = cpu_backward_meta,
     .derivatives = {{{"grad_out"}, {}, not_implemented},
                     {{"query"}, {}, not_implemented},
                     {{"key"}, {}, not_implemented},
                     {{"value"}, {}, not_implemented}},
     .flops = uncounted<attention_backward_flops>,
     .examples = {"f32[2,3,4,8] f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8] f32[2,3,4,8] f32[2,3,4] 0.0 False"},
     .facts = {.takes = kHeadsOfBackward, .kernel = Kernel::attention}}};

}  // namespace

Tables flash_attention_operators() {
  static constexpr Records tables[] = {kFlashAttention};
  return tables;
}

}  // namespace metaprof
