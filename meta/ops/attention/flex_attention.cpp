// Flex attention that torch.compile has compiled (torch/_inductor/kernel/flex, PyTorch 2.11): the function of its own in
// which a model calls it, torch.compile(flex_attention). PyTorch cannot save a call of flex_attention; the operator here is
// how python/metaprof/_flex_attention.py writes one.

#include <bit>

#include "meta/autograd/engine/backward.h"
#include "meta/autograd/engine/graph_task.h"
#include "meta/autograd/engine/op_node.h"
#include "meta/autograd/graph/state.h"
#include "meta/autograd/modes/autocast.h"
#include "meta/ops/attention/attention.h"
#include "meta/ops/attention/family.h"
#include "meta/ops/attention/takes.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

// As _inductor/kernel/flex/common.py, infer_dense_strides: the order of another tensor's dimensions, the last one innermost.
Tensor& output_ordered_like(Call& c, const Sizes& sizes, const Tensor& like) {
  Sizes strides = dense_strides_like(sizes, like.strides());
  if (strides.back() != 1) {
    Sizes order = like.strides();
    order.back() = 0;
    strides = dense_strides_like(sizes, order);
  }
  return c.output(sizes, strides, like.dtype());
}

Sizes rows_of(const Tensor& query) { return {query.size(0), query.size(1), query.size(2)}; }

void flex_meta(Call& c) {
  const Tensor &query = c.tensor("query"), &key = c.tensor("key"), &value = c.tensor("value");
  if (key.size(1) == 0 || query.size(1) % key.size(1) != 0)
    c.error("the number of the query's heads must be a multiple of the key's");
  Sizes sizes = query.sizes();
  sizes.back() = value.size(3);
  output_ordered_like(c, sizes, query);
  c.output(rows_of(query), DType::f32);
  c.output(rows_of(query), DType::f32);
}

// flex_decoding.py, _use_flex_decoding: queries shorter than a block, whose keys are split among the multiprocessors.
bool splits_keys(const Call& c) {
  const Tensor &query = c.tensor("query"), &key = c.tensor("key");
  const int64_t heads = query.size(1), shared = heads / key.size(1);
  if (query.size(2) >= 128 || !std::has_single_bit(uint64_t(shared))) return false;
  const Value::Tensors& mask = c.tensors("block_mask");
  const int64_t heads_of_mask = mask.empty() ? 1 : mask[0].size(1);
  return heads_of_mask == 1 || (shared == 1 && heads_of_mask == heads);
}

void split_forward(Call& c) {
  const Tensor &query = c.tensor("query"), &value = c.tensor("value");
  const int64_t batch = query.size(0), heads = query.size(1), length = query.size(2);
  const int64_t rows = std::max<int64_t>(batch * value.size(1), 1);
  const int64_t splits = c.ask([=](const Platform& platform) {
    return std::max<int64_t>(platform.hardware.multiprocessors / rows * 2, 1);
  });
  const Tensor most = c.temporary(Sizes{batch, splits, heads, length}, DType::f32);
  Tensor sums = c.temporary(Sizes{batch, splits, heads, length}, DType::f32);
  const Tensor parts = c.temporary(Sizes{batch, splits, heads, length, value.size(3)}, DType::f32);
  const Tensor most_of_all = c.temporary(Sizes{batch, 1, heads, length}, DType::f32);
  const Tensor sum = c.temporary(rows_of(query), DType::f32);
  c.allocate(1);
  sums.reset();
  c.allocate(0);
  c.allocate(2);
}

void flex_cuda(Call& c) {
  if (splits_keys(c)) return split_forward(c);
  c.allocate(1);
  c.allocate(2);
  c.allocate(0);
}

// Query, key and value alone (flex_attention_autocast_cuda).
void flex_cast(Call& c) {
  cast_arguments(c, {"query", "key", "value"}, c.session.modes.autocast_dtype);
  c.next();
}

void flex_backward_meta(Call& c) {
  const Tensor &query = c.tensor("query"), &key = c.tensor("key"), &value = c.tensor("value");
  output_ordered_like(c, query.sizes(), query);
  for (const Tensor* of : {&key, &value}) {
    Sizes sizes = of->sizes();
    sizes[0] = query.size(0);
    output_ordered_like(c, sizes, *of);
  }
  // Gradients of what a score function takes are summed in 32 bits.
  Value::Tensors sums;
  for (const Tensor& buffer : c.tensors("score_buffers"))
    sums.push_back(c.session.empty_strided(buffer.sizes(), contiguous_strides(buffer.sizes()), DType::f32,
                                           buffer.device()));
  c.result(Value(std::move(sums)));
}

// What the kernels no longer read goes while they run: the caller has handed it over.
void flex_backward_cuda(Call& c) {
  const Tensor& query = c.tensor("query");
  const Tensor delta = c.temporary(rows_of(query), DType::f32);
  Tensor of_sums;
  if (c.given("grad_logsumexp")) of_sums = c.temporary(rows_of(query), DType::f32);
  c.arguments[c.index_of("output")] = Value();
  c.allocate(0);
  c.allocate(2);
  c.allocate(1);
}

// Unless the graph is kept, a compiled function lets go what it has saved while it runs (maybe_clear_saved_tensors).
Tensor handed_over(Backward& b, Name name) { return std::move(const_cast<Tensor&>(b(name))); }

// Keys of one element for a whole batch.
Tensor summed_over_batch(Session& s, Tensor gradient, int64_t batch) {
  if (gradient.size(0) == batch) return gradient;
  return call<"sum.dim_IntList">(s, gradient, Sizes{0}, true);
}

Gradients flex_gradients(Backward& b) {
  Session& s = b.session;
  Tensor query = handed_over(b, "query"), key = handed_over(b, "key"), value = handed_over(b, "value");
  Tensor output = handed_over(b, "output"), logsumexp = handed_over(b, "logsumexp");
  const int64_t batch = key.size(0);
  const Tensor incoming = b.grad(0).defined() ? b.grad(0) : call<"zeros_like">(s, output);
  Tensor gradient = call<"contiguous">(s, incoming);
  // A gradient for each buffer that learns.
  std::vector<Tensor> buffers;
  for (size_t i = 0; i < b.list("score_buffers").size(); ++i)
    if (b.wants("score_buffers", i)) buffers.push_back(b.list("score_buffers")[i]);
  const GraphTask* task = autograd_state(s).running_task;
  if (task && !task->keep_graph) b.node.release_variables();
  Results all = call_all<"metaprof::flex_attention_backward">(
      s, std::move(gradient), b.grad(1).defined() ? Value(b.grad(1)) : Value(), std::move(query),
      std::move(key), std::move(value), std::move(output), std::move(logsumexp), Value::Tensors(buffers));
  Gradients out;
  for (size_t i = 0; i < 3; ++i) out.push_back(all.list()[i].take_tensor());
  for (size_t i = 1; i < 3; ++i) out[i] = summed_over_batch(s, std::move(out[i]), batch);
  size_t next = 0;
  const Value sums = std::move(all.list()[3]);
  for (size_t i = 0; i < b.list("score_buffers").size(); ++i)
    out.push_back(b.wants("score_buffers", i)
                      ? call<"to.dtype">(s, sums.tensors()[next++], b.list("score_buffers")[i].dtype())
                      : Tensor());
  return out;
}

// What a block mask leaves out is data; PyTorch's counter leaves out nothing, either, unless it is told (2.15,
// torch/utils/flop_counter.py; before there is none).
template <FlopCount (*count)(const Call&)>
FlopCount all_pairs(const Call& c) {
  return {.own = count(c).counted};
}

constexpr Op kFlexAttention[] = {
    {.schema =
         "metaprof::flex_attention(Tensor query, Tensor key, Tensor value, Tensor[] block_mask, Tensor[] "
         "score_buffers, Tensor[] mask_buffers) -> (Tensor output, Tensor logsumexp, Tensor max_scores)",
     .summary = "softmax(score function(scale · query · keyᵀ)) · value, blocks of a mask alone, compiled",
     .meta = flex_meta,
     .host_code = {{DeviceType::cuda, flex_cuda}},
     .derivatives = {{{"query", "key", "value", "score_buffers"},
                      {"query", "key", "value", "block_mask", "score_buffers", "mask_buffers", "output",
                       "logsumexp"},
                      flex_gradients}},
     .flops = all_pairs<attention_flops>,
     .examples =
         {"bf16[2,4,256,32] bf16[2,2,256,32] bf16[2,2,256,32] (i32[1,1,2] i32[1,1,2,2]) (f32[4,512]) ()",
          "f32[2,4,64,32] f32[2,4,64,32] f32[2,4,64,32] () () ()"},
     .facts = {.takes = kHeadsOfForward,
               .product = true,
               .kernel = Kernel::attention,
               .no_gradient_for = {"max_scores"},
               .cast_by = flex_cast}},
    {.schema = "metaprof::flex_attention_backward(Tensor grad_output, Tensor? grad_logsumexp, Tensor query, "
               "Tensor key, Tensor value, Tensor output, Tensor logsumexp, Tensor[] score_buffers) -> "
               "(Tensor grad_query, Tensor grad_key, Tensor grad_value, Tensor[] grad_buffers)",
     .summary = "gradients of query, key, value and of what the score function takes",
     .meta = flex_backward_meta,
     .host_code = {{DeviceType::cuda, flex_backward_cuda}},
     .derivatives = not_differentiable,
     .flops = all_pairs<attention_backward_flops>,
     .examples = {"bf16[2,4,256,32] None bf16[2,4,256,32] bf16[2,2,256,32] bf16[2,2,256,32] bf16[2,4,256,32] "
                  "f32[2,4,256] (f32[4,512])"},
     .facts = {.takes = kHeadsOfForward, .kernel = Kernel::attention}}};

}  // namespace

Tables flex_attention_operators() {
  static constexpr Records tables[] = {kFlexAttention};
  return tables;
}

}  // namespace metaprof
