// Embedding: rows of a table, and the sparse and dense gradients of the table.

#include "meta/ops/indexing/embedding.h"

#include <fmt/format.h>

#include <bit>

#include "core/rounding.h"
#include "meta/autograd/engine/backward.h"
#include "meta/ops/indexing/family.h"
#include "meta/ops/rules/cub.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

void embedding_meta(Call& c) {
  const Tensor &weight = c.tensor("weight"), &indices = c.tensor("indices");
  if (weight.dim() != 2) c.error(fmt::format("weight must be a matrix, got {}", describe(weight)));
  Sizes sizes = indices.sizes();
  sizes.push_back(weight.size(1));
  c.output(sizes, weight.dtype());
}

// index_select of the flattened indices: a copy of them first if they cannot be viewed so.
void embedding_cuda(Call& c) {
  const Tensor& indices = c.tensor("indices");
  Tensor flat;
  if (indices.dim() != 1) flat = reshape(indices, Sizes{-1});
  c.allocate(0);
}

void embedding_dense_backward_meta(Call& c) {
  const Tensor& grad = c.tensor("grad_output");
  c.output(Sizes{c.integer("num_weights"), grad.size(-1)}, grad.dtype());
}

// aten/src/ATen/native/cuda/Embedding.cu, embedding_dense_backward_cuda.
void embedding_dense_backward_cuda(Call& c) {
  const Tensor indices = c.contiguous(c.tensor("indices")), grad = c.contiguous(c.tensor("grad_output"));
  const bool by_frequency = c.boolean("scale_grad_by_freq");
  if (indices.numel() <= 3072 && !by_frequency) return c.allocate(0);
  sorted_embedding_gradient(c, indices, by_frequency);
}

// How many indices are padding is data; none is taken to be.
Tensor without_padding(Call& c, const Tensor& tensor, const Tensor& kept) {
  Sizes all{kept.numel()};
  all.append(tensor.sizes().begin() + kept.dim(), tensor.sizes().end());
  const Scoped<SizesByData> assumed(c.session.sizes_by_data, {all, true});
  return call<"index.Tensor">(c.session, tensor, Value::Tensors{kept});
}

// The table's gradient as indices and rows (aten/src/ATen/native/Embedding.cpp, embedding_sparse_backward).
void embedding_sparse_backward_body(Call& c) {
  const Tensor &grad = c.tensor("grad"), &given = c.tensor("indices");
  if (c.boolean("scale_grad_by_freq")) c.error("a sparse gradient cannot be scaled by frequency");
  const int64_t columns = grad.size(-1);
  const Sizes sizes{c.integer("num_weights"), columns};
  Tensor indices = given, rows = grad;
  if (c.integer("padding_idx") != -1) {
    const Tensor kept = call<"ne.Scalar">(c.session, given, c["padding_idx"]);
    indices = without_padding(c, given, kept);
    rows = without_padding(c, grad, kept);
  }
  const Tensor index_row = to(reshape(indices, Sizes{1, -1}), DType::i64);
  c.result(Tensor(
      call<"_sparse_coo_tensor_unsafe">(c.session, index_row, reshape(rows, Sizes{-1, columns}), sizes)));
}

void embedding_backward_body(Call& c) {
  if (c.boolean("sparse")) {
    c.result(call<"embedding_sparse_backward">(c.session, c["grad"], c["indices"], c["num_weights"],
                                               c["padding_idx"], c["scale_grad_by_freq"]));
  } else {
    c.result(call<"embedding_dense_backward">(c.session, c["grad"], c["indices"], c["num_weights"],
                                              c["padding_idx"], c["scale_grad_by_freq"]));
  }
}

}  // namespace

namespace {

void segmented_gradient(Call& c, int64_t count, DType index_type) {
  // aten/src/ATen/native/cuda/EmbeddingBackwardKernel.cu (recorded: `shapes/embedding`).
  const Tensor& result = c.result_tensor();
  const int64_t rows = result.size(0), columns = result.size(1), index = element_size(index_type);
  const DType accumulated = accumulate_type(result.dtype());
  c.allocate(0);
  const Tensor segments = c.temporary(Sizes{count}, index_type);
  const Tensor segment_count = c.temporary({}, DType::i64);
  {
    const Tensor keys = c.temporary(Sizes{count}, index_type);
    c.temporary_bytes(cub_bytes<cub_unique_by_key_bytes>(c, count, index));
  }
  const int64_t most_segments = std::min(count, rows);
  const Tensor partials = c.temporary(Sizes{most_segments}, index_type);
  const Tensor partial_offsets = c.temporary(Sizes{most_segments}, index_type);
  c.temporary_bytes(cub_scan_bytes(most_segments, index));
  const Tensor partial_count = c.temporary({}, DType::i64);
  // A segment is a row of the table; it is summed in parts of ten indices.
  const int64_t most_partials = count / 10 + most_segments;
  const Tensor partial_begins = c.temporary(Sizes{most_partials}, index_type);
  if (columns == 0) return;
  const int64_t warped = divide_up(columns, 32) * 32, block = std::min<int64_t>(warped, 1024);
  const int64_t grid = divide_up(most_segments * warped, block);
  const bool leaves_room =
      c.ask([=](const Platform& platform) { return grid < int64_t{4} * platform.hardware.multiprocessors; });
  if (leaves_room && most_partials > 4 * grid) {
    // Few rows: parts are added up atomically.
    const Tensor segment_of_partial = c.temporary(Sizes{most_partials}, index_type);
    Tensor sums;
    if (accumulated != result.dtype()) sums = c.temporary(Sizes{rows, columns}, accumulated);
    return;
  }
  const Tensor sums = c.temporary(Sizes{most_partials, columns}, accumulated);
}

}  // namespace

void sorted_embedding_gradient(Call& c, const Tensor& indices, bool by_frequency) {
  const int64_t count = indices.numel(), index = element_size(indices.dtype());
  const Tensor sorted = c.temporary(indices.sizes(), indices.dtype());
  const Tensor original = c.temporary(indices.sizes(), indices.dtype());
  {
    const Tensor range = c.temporary(Sizes{count}, indices.dtype());
    const int64_t rows = c.result_tensor().size(0);
    const bool needed = c.platform().framework.sorts_rows_by_needed_bits;
    const int64_t bits = needed ? std::bit_width(static_cast<uint64_t>(rows)) : 8 * index;
    c.temporary_bytes(cub_bytes<cub_sort_bytes>(c, count, index, index, bits));
  }
  Tensor counts;
  if (by_frequency) {
    counts = c.temporary(indices.sizes(), indices.dtype());
    for (int scan = 0; scan < 2; ++scan) c.temporary_bytes(cub_bytes<cub_scan_by_key_bytes>(c, count, index));
  }
  segmented_gradient(c, count, indices.dtype());
}

namespace {

constexpr Op kEmbedding[] = {
    {.schema = "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
               "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
     .summary = "rows of weight at the indices",
     .meta = embedding_meta,
     .host_code = {{DeviceType::cuda, embedding_cuda}},
     .derivatives = {{{"weight"},
                      {"indices"},
                      [](Backward& b) {
                        return call<"embedding_backward">(b.session, b.grad(), b("indices"),
                                                          b.sizes("weight")[0], b["padding_idx"],
                                                          b["scale_grad_by_freq"], b["sparse"]);
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[10,3] i64[2,4]", "f32[10,3] i64[5] 0", "f32[10,3] i64[2] -1 False True"}},
    {.schema = "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool "
               "scale_grad_by_freq, bool sparse) -> Tensor",
     .summary = "gradient of the table, dense or sparse",
     .meta = composite(embedding_backward_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,4,3] i64[2,4] 10 -1 False False"}},
    {.schema = "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt "
               "padding_idx, bool scale_grad_by_freq) -> Tensor",
     .summary = "zeros of the table with the gradients added to the rows at the indices",
     .meta = embedding_dense_backward_meta,
     .host_code = {{DeviceType::cuda, embedding_dense_backward_cuda}},
     .derivatives = {{{"grad_output"},
                      {"indices"},
                      [](Backward& b) -> Gradients {
                        // embedding_dense_double_backward: the rows that were added up.
                        const Tensor& indices = b("indices");
                        const Tensor rows =
                            call<"index_select">(b.session, b.grad(), 0, reshape(indices, Sizes{-1}));
                        return {view(rows, b.sizes("grad_output"))};
                      }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = c.tensor("grad_output").numel()}; },
     .examples = {"f32[2,4,3] i64[2,4] 10 -1 False"},
     .facts = {.takes = "grad_output.dim > indices.dim, grad_output.size(-1) > 0, num_weights >= 0"}},
    {.schema = "embedding_sparse_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, "
               "bool scale_grad_by_freq) -> Tensor",
     .summary = "gradient of the table as indices and rows",
     .meta = composite(embedding_sparse_backward_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,4,3] i64[2,4] 10 -1 False"}}};

}  // namespace

Tables embedding_operators() {
  static constexpr Records tables[] = {kEmbedding};
  return tables;
}

}  // namespace metaprof
