// Several tensors made one.

#include <fmt/format.h>

#include "meta/ops/rules/elementwise.h"
#include "meta/ops/views/family.h"

namespace metaprof {
namespace {

// --- cat

// An empty vector may be joined with anything, for old times' sake.
bool skipped(SizesView sizes) { return sizes.size() == 1 && sizes[0] == 0; }

const Tensor* first_counted(const Value::Tensors& tensors) {
  for (const Tensor& tensor : tensors)
    if (!skipped(tensor.sizes())) return &tensor;
  return nullptr;
}

// ATen/native/TensorShape.cpp, cat_compute_output_memory_format: the format all of them suggest.
MemoryFormat common_format(const Value::Tensors& tensors) {
  const MemoryFormat format = suggested_format(tensors[0]);
  for (const Tensor& tensor : tensors)
    if (suggested_format(tensor) != format) return MemoryFormat::contiguous;
  return format;
}

void cat_meta(Call& c) {
  const Value::Tensors& tensors = c.tensors("tensors");
  const DType dtype = result_type(tensors);
  const Tensor* first = first_counted(tensors);
  if (!first) {
    c.output(Sizes{0}, dtype);
    return;
  }
  const auto dim = size_t(wrap_dim(c.integer("dim"), first->dim()));
  Sizes sizes = first->sizes();
  sizes[dim] = 0;
  for (const Tensor& tensor : tensors) {
    if (skipped(tensor.sizes())) continue;
    if (tensor.dim() != first->dim())
      c.error(fmt::format("joins tensors of as many dimensions; got {} and {}", describe(*first),
                          describe(tensor)));
    for (size_t d = 0; d < sizes.size(); ++d)
      if (d != dim && tensor.sizes()[d] != sizes[d])
        c.error(fmt::format("sizes must agree except in dimension {}; got {} and {}", dim, describe(*first),
                            describe(tensor)));
    sizes[dim] += tensor.sizes()[dim];
  }
  c.output(sizes, strides_in(common_format(tensors), sizes), dtype);
}

// Views of the gradient; for all tensors, as the framework does (cat_tensors_backward).
Gradients cat_backward(Backward& b) {
  const auto& shapes = b.shapes("tensors");
  const int64_t dim = wrap_dim(b.integer("dim"), b.grad().dim());
  Gradients gradients;
  int64_t end = 0;
  for (const Geometry& shape : shapes) {
    if (skipped(shape->sizes)) {
      gradients.push_back(call<"zeros">(b.session, Sizes{0}, b.grad().dtype(), Value(), b.grad().device()));
      continue;
    }
    const int64_t size = shape->sizes[size_t(dim)];
    end += size;
    const Tensor part = call<"narrow">(b.session, b.grad(), dim, end - size, size);
    gradients.push_back(real_if(part, shape->dtype));
  }
  return gradients;
}

// --- stack

void stack_meta(Call& c) {
  const Value::Tensors& tensors = c.tensors("tensors");
  const auto dim = size_t(wrap_dim(c.integer("dim"), tensors[0].dim() + 1));
  std::vector<Tensor> raised;
  for (const Tensor& tensor : tensors) {
    if (tensor.sizes() != tensors[0].sizes())
      c.error(fmt::format("stacks tensors of the same sizes; got {} and {}", describe(tensors[0]),
                          describe(tensor)));
    Sizes sizes = tensor.sizes(), strides = tensor.strides();
    strides.insert(dim, dim < sizes.size() ? sizes[dim] * strides[dim] : 1);
    sizes.insert(dim, 1);
    raised.push_back(alias(tensor, sizes, strides, tensor->offset));
  }
  Sizes sizes = raised[0].sizes();
  sizes[dim] = int64_t(tensors.size());
  c.output(sizes, strides_in(common_format(raised), sizes), result_type(tensors));
}

Gradients stack_backward(Backward& b) {
  Gradients gradients;
  const auto& shapes = b.shapes("tensors");
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Tensor part = call<"select.int">(b.session, b.grad(), b["dim"], i);
    gradients.push_back(real_if(part, shapes[i]->dtype));
  }
  return gradients;
}

// --- composites

std::vector<Tensor> at_least(Session& session, const Value::Tensors& tensors, int64_t dims) {
  std::vector<Tensor> out;
  for (const Tensor& tensor : tensors) {
    if (dims == 1) out.push_back(call<"atleast_1d">(session, tensor));
    if (dims == 2) out.push_back(call<"atleast_2d">(session, tensor));
    if (dims == 3) out.push_back(call<"atleast_3d">(session, tensor));
  }
  return out;
}

void hstack_body(Call& c) {
  std::vector<Tensor> rows = at_least(c.session, c.tensors("tensors"), 1);
  const int64_t dim = rows[0].dim() == 1 ? 0 : 1;
  c.result(call<"cat">(c.session, std::move(rows), dim));
}

void column_stack_body(Call& c) {
  std::vector<Tensor> columns;
  for (const Tensor& tensor : c.tensors("tensors"))
    columns.push_back(tensor.dim() <= 1 ? reshape(tensor, Sizes{tensor.numel(), 1}) : tensor);
  c.result(call<"hstack">(c.session, std::move(columns)));
}

// --- block_diag, _chunk_cat

// Matrices along the diagonal; numbers and vectors are rows.
std::pair<int64_t, int64_t> block_sizes(SizesView sizes) {
  const int64_t rows = sizes.size() == 2 ? sizes[0] : 1;
  return {rows, sizes.empty() ? 1 : sizes.back()};
}

void block_diag_meta(Call& c) {
  const Value::Tensors& tensors = c.tensors("tensors");
  int64_t rows = tensors.empty() ? 1 : 0, columns = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() > 2) c.error(fmt::format("expects matrices, got {}", describe(tensor)));
    const auto [r, k] = block_sizes(tensor.sizes());
    rows += r;
    columns += k;
  }
  c.output(Sizes{rows, columns}, result_type(tensors));
}

Gradients block_diag_backward(Backward& b) {
  Gradients gradients;
  int64_t row = 0, column = 0;
  for (const Geometry& shape : b.shapes("tensors")) {
    const auto [rows, columns] = block_sizes(shape->sizes);
    Tensor block = call<"slice.Tensor">(b.session, b.grad(), 0, row, row + rows);
    block = call<"slice.Tensor">(b.session, block, 1, column, column + columns);
    row += rows;
    column += columns;
    for (size_t d = shape->sizes.size(); d < 2; ++d) block = squeeze(block, -1);
    gradients.push_back(std::move(block));
  }
  return gradients;
}

// Every tensor is padded to `num_chunks` equal pieces along the dimension; then pieces of a number are
// joined.

// Elements of one chunk of a tensor, padding counted.
int64_t chunk_length(const Tensor& tensor, int64_t dim, int64_t chunks) {
  int64_t length = (tensor.size(dim) + chunks - 1) / chunks;
  for (int64_t d = dim + 1; d < tensor.dim(); ++d) length *= tensor.size(d);
  return length;
}

void chunk_cat_meta(Call& c) {
  const Value::Tensors& tensors = c.tensors("tensors");
  const int64_t dim = wrap_dim(c.integer("dim"), tensors[0].dim()), chunks = c.integer("num_chunks");
  Sizes sizes(tensors[0].sizes().begin(), tensors[0].sizes().begin() + dim);
  int64_t length = 0;
  for (const Tensor& tensor : tensors) length += chunk_length(tensor, dim, chunks);
  sizes.push_back(chunks);
  sizes.push_back(length);
  c.output(sizes, result_type(tensors));
}

// A tensor whose dimension does not divide is copied into zeros; one that cannot be viewed in chunks is
// copied.
Tensor in_chunks(Call& c, const Tensor& tensor, int64_t dim, int64_t chunks) {
  if (tensor.size(dim) % chunks == 0) {
    Sizes sizes(tensor.sizes().begin(), tensor.sizes().begin() + dim);
    sizes.push_back(chunks);
    sizes.push_back(-1);
    return reshape(tensor, sizes);
  }
  Sizes padded = tensor.sizes();
  padded[size_t(dim)] = (tensor.size(dim) + chunks - 1) / chunks * chunks;
  return c.temporary(padded, tensor.dtype());
}

void joined_chunks(Call& c, int64_t dim, int64_t chunks) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : c.tensors("tensors")) parts.push_back(in_chunks(c, tensor, dim, chunks));
  c.allocate(0);
}

// ATen/native/cuda/TensorShape.cu, _chunk_cat_cuda: a table of int64 is copied to the device: six numbers for
// each tensor, two ends, and the tensor of each thread block, which writes 2048 bytes. Tensors that are not
// all contiguous are chunked one by one and joined.
void chunk_cat_cuda(Call& c) {
  constexpr int64_t kBlockBytes = int64_t{128} * 16;
  const Value::Tensors& tensors = c.tensors("tensors");
  const int64_t dim = wrap_dim(c.integer("dim"), tensors[0].dim()), chunks = c.integer("num_chunks");
  int64_t blocks = 0;
  for (const Tensor& tensor : tensors) {
    if (!tensor.is_contiguous()) return joined_chunks(c, dim, chunks);
    const int64_t bytes = chunk_length(tensor, dim, chunks) * element_size(c.result_tensor().dtype());
    blocks += (bytes + kBlockBytes - 1) / kBlockBytes;
  }
  c.allocate(0);
  auto table = c.temporary_bytes(8 * (6 * int64_t(tensors.size()) + 2 + blocks));
}

// torch/csrc/utils/tensor_flatten.h: several tensors as one row of elements, and back. An empty one is not a view, so
// that none shares memory with nothing in it.
void flatten_dense_body(Call& c) {
  const Value::Tensors& tensors = c.tensors("tensors");
  Value::Tensors rows;
  for (const Tensor& tensor : tensors) rows.push_back(view(contiguous(tensor), Sizes{-1}));
  c.result(rows.size() == 1 ? rows[0] : cat(rows, 0));
}

void unflatten_dense_body(Call& c) {
  const Tensor& flat = c.tensor("flat");
  Value::Tensors parts;
  int64_t begin = 0;
  for (const Tensor& tensor : c.tensors("tensors")) {
    const int64_t length = tensor.numel();
    parts.push_back(length == 0 ? call<"new_empty">(c.session, flat, Sizes{0})
                                : view(narrow(flat, 0, begin, length), tensor.sizes()));
    begin += length;
  }
  c.result(Value(std::move(parts)));
}

constexpr Op kJoining[] = {
    // Autocast leaves cat and stack alone on CUDA (PyTorch 2.11 registers them for the host only; recorded:
    // autocast/bf16/cat-4x128-256-256); their kernels take tensors of several types.
    {.schema = "cat(Tensor[] tensors, int dim=0) -> Tensor",
     .summary = "joined along a dimension",
     .meta = cat_meta,
     .derivatives = {{{"tensors"}, {}, cat_backward}},
     .flops = free_of_flops,
     .examples = {"(f32[2,3] f32[1,3])", "(f32[2,3] f32[2,1]) -1"},
     .facts = {.takes = "tensors.length > 0, tensors.dim > 0"}},
    {.schema = "stack(Tensor[] tensors, int dim=0) -> Tensor",
     .summary = "joined along a new dimension",
     .meta = stack_meta,
     .derivatives = {{{"tensors"}, {}, stack_backward}},
     .flops = free_of_flops,
     .examples = {"(f32[2,3] f32[2,3])", "(f32[2] f32[2]) -1"},
     .facts = {.takes = "tensors.length > 0"}},
    {.schema = "block_diag(Tensor[] tensors) -> Tensor",
     .summary = "matrices along the diagonal",
     .meta = block_diag_meta,
     .derivatives = {{{"tensors"}, {}, block_diag_backward}},
     .flops = free_of_flops,
     .examples = {"(f32[2,3] f32[3] f32[])"}},
    {.schema = "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
     .summary = "chunks of the same number joined",
     .meta = chunk_cat_meta,
     .host_code = {{DeviceType::cuda, chunk_cat_cuda}},
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"(f32[5,3] f32[4]) 0 2"},
     .facts = {.takes = "tensors.length > 0, tensors.dim > 0, dim in tensors, num_chunks > 0"}},
    composite_of("hstack(Tensor[] tensors) -> Tensor", "joined along columns", hstack_body,
                 {"(f32[2] f32[2])", "(f32[2,3] f32[2,1])"}, {.takes = "tensors.length > 0"}),
    composite_of(
        "vstack(Tensor[] tensors) -> Tensor", "joined along rows",
        [](Call& c) { c.result(call<"cat">(c.session, at_least(c.session, c.tensors("tensors"), 2), 0)); },
        {"(f32[2] f32[2])"}, {.takes = "tensors.length > 0"}),
    composite_of(
        "dstack(Tensor[] tensors) -> Tensor", "joined along the third dimension",
        [](Call& c) { c.result(call<"cat">(c.session, at_least(c.session, c.tensors("tensors"), 3), 2)); },
        {"(f32[2] f32[2])"}, {.takes = "tensors.length > 0"}),
    composite_of("column_stack(Tensor[] tensors) -> Tensor", "joined as columns", column_stack_body,
                 {"(f32[2] f32[2,3])"}, {.takes = "tensors.length > 0"}),
    composite_of("flatten_dense_tensors(Tensor[] tensors) -> Tensor", "all elements in a row",
                 flatten_dense_body, {"(f32[2,3] f32[4])", "(f32[2,3])"}, {.takes = "tensors.length > 0"}),
    composite_of("unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]",
                 "a row of elements as tensors of these sizes", unflatten_dense_body,
                 {"f32[10] (f32[2,3] f32[4])", "f32[4] (f32[4] f32[0])"})};

}  // namespace

Tables joining_operators() {
  static constexpr Records tables[] = {kJoining};
  return tables;
}

}  // namespace metaprof
