// Transposed convolutions by columns: what the framework does where cuDNN cannot (output padding as large as
// a stride). Group by group, then concatenated (aten/src/ATen/native/Convolution.cpp,
// cuda/NaiveConvolutionTranspose{2d,3d}.cu, 2.11; recorded: opinfo/nn.functional.conv_transpose2d/2).

#include "meta/ops/convolution.h"
#include "meta/ops/library.h"
#include "meta/ops/reduction.h"

namespace metaprof {
namespace {

// Part g of `groups` along a dimension, row-major: a copy unless the part lies so already.
Tensor part(Call& c, const Tensor& tensor, int64_t dim, int64_t groups, int64_t g) {
  if (groups == 1) return c.contiguous(tensor);
  Sizes sizes = tensor.sizes();
  sizes[size_t(dim)] /= groups;
  const int64_t offset = tensor->offset + g * sizes[size_t(dim)] * tensor.strides()[size_t(dim)];
  return c.contiguous(alias(tensor, sizes, tensor.strides(), offset));
}

Sizes part_sizes(SizesView sizes, int64_t dim, int64_t groups) {
  Sizes part(sizes);
  part[size_t(dim)] /= groups;
  return part;
}

int64_t positions(const Sizes& sizes) { return numel(SizesView(sizes.begin() + 2, sizes.end())); }

// One row per element of the kernel, one column per position of the input.
Sizes column_sizes(const Convolution& v) {
  return {v.weight.size(1) * positions(v.weight.sizes()), positions(v.input.sizes())};
}

// The 3-D result begins with the input's size and is resized.
Tensor part_output(Call& c, const Convolution& v, const Tensor& input, const Sizes& sizes) {
  Ref<Storage> first;
  if (v.input.dim() == 5 && input.numel() < numel(sizes))
    first = c.temporary_bytes(input.numel() * element_size(input.dtype()));
  return c.temporary(sizes, input.dtype());
}

void forward_group(Call& c, const Convolution& v, const Sizes& output_part) {
  const DType dtype = v.input.dtype();
  const Tensor columns = c.temporary(column_sizes(v), dtype);
  const Tensor ones =
      c.given("bias") ? c.temporary(SizesView(output_part.begin() + 2, output_part.end()), dtype) : Tensor();
  blas_workspace(c);
}

}  // namespace

void slow_transposed_forward(Call& c, const Convolution& v) {
  const Sizes sizes = seen_as_2d(c.result_tensor()).sizes();
  if (v.groups == 1) {
    const Tensor input = c.contiguous(v.input);
    c.allocate(0);
    return forward_group(c, v, sizes);
  }
  std::vector<Tensor> parts;
  for (int64_t g = 0; g < v.groups; ++g) {
    const Tensor input = part(c, v.input, 1, v.groups, g), weight = part(c, v.weight, 0, v.groups, g);
    parts.push_back(part_output(c, v, input, part_sizes(sizes, 1, v.groups)));
    forward_group(c, v, parts.back().sizes());
  }
  c.allocate(0);
  for (Tensor& made : parts) made.reset();
}

void slow_transposed_backward(Call& c, const Convolution& v, const Tensor& incoming) {
  const auto& wants = c["output_mask"].booleans();
  const DType dtype = v.input.dtype();
  const Sizes result_sizes[3] = {v.input.sizes(), v.weight.sizes(), Sizes{incoming.size(1)}};
  const int64_t joined_along[3] = {1, 0, 0};
  std::vector<Tensor> parts[3];
  const auto make = [&](size_t i) {
    if (!wants[i]) return;
    if (v.groups == 1) return c.allocate(i);
    parts[i].push_back(c.temporary(part_sizes(result_sizes[i], joined_along[i], v.groups), dtype));
  };
  for (int64_t g = 0; g < v.groups; ++g) {
    const Tensor grad = part(c, incoming, 1, v.groups, g), input = part(c, v.input, 1, v.groups, g);
    const Tensor weight = part(c, v.weight, 0, v.groups, g);
    if (wants[0]) {
      make(0);
      const Tensor columns = c.temporary(column_sizes(v), dtype);
      blas_workspace(c);
    }
    make(1);
    make(2);
    if (!wants[1] && !wants[2]) continue;
    const Tensor columns = c.temporary(column_sizes(v), dtype);
    blas_workspace(c);
    if (!wants[2]) continue;
    Sizes all_but_channels{0};
    for (int64_t d = 2; d < grad.dim(); ++d) all_but_channels.push_back(d);
    const Tensor& sums = v.groups == 1 ? c.result_tensor(2) : parts[2].back();
    reduction_buffers(c, grad, all_but_channels, sums, {.vector = element_size(dtype) == 2 ? 8 : 4});
  }
  for (size_t i = 0; i < 3; ++i)
    if (wants[i]) c.allocate(i);
  for (size_t i = 3; i-- > 0;)
    for (Tensor& made : parts[i]) made.reset();
}

}  // namespace metaprof
