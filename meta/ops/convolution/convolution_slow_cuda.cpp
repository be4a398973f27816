// Convolutions by columns: what the framework does where cuDNN cannot (output padding as large as a stride; bf16 before
// compute capability 8.0). Group by group, then concatenated (aten/src/ATen/native/Convolution.cpp, cuda/ConvolutionMM2d.cu,
// cuda/NaiveDilatedConvolution.cu, cuda/NaiveConvolutionTranspose{2d,3d}.cu, 2.11; recorded:
// opinfo/nn.functional.conv_transpose2d/2, and tests/data/captured/slow_convolutions.py).

#include <algorithm>
#include <functional>

#include "meta/ops/convolution/convolution.h"
#include "meta/ops/rules/library.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {
namespace {

// Part g of `groups` along a dimension, contiguous in the format of the whole: a copy unless it lies so
// already. The whole stays as it is.
Tensor part(Call& c, const Tensor& tensor, int64_t dim, int64_t groups, int64_t g) {
  if (groups == 1) return tensor;
  Sizes sizes = tensor.sizes();
  sizes[size_t(dim)] /= groups;
  const int64_t offset = tensor->offset + g * sizes[size_t(dim)] * tensor.strides()[size_t(dim)];
  return c.contiguous(alias(tensor, sizes, tensor.strides(), offset), suggested_format(tensor));
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

int64_t bytes_of(const Sizes& sizes, DType dtype) { return multiply(numel(sizes), element_size(dtype)); }

// The 3-D result begins with the input's size and is resized: what is too small is replaced, what is too
// large stays.
int64_t bytes_at_first(const Tensor& input) {
  return input.dim() == 5 ? bytes_of(input.sizes(), input.dtype()) : 0;
}

// One group's result, to be concatenated.
Ref<Storage> part_output(Call& c, int64_t bytes_first, int64_t bytes) {
  if (bytes_first >= bytes) return c.temporary_bytes(bytes_first);
  const Ref<Storage> first = c.temporary_bytes(bytes_first);
  return c.temporary_bytes(bytes);
}

void whole_output(Call& c, int64_t bytes_first, int64_t bytes) {
  if (bytes_first >= bytes) return c.allocate(0, bytes_first);
  const Ref<Storage> first = c.temporary_bytes(bytes_first);
  c.allocate(0);
}

void products_of_each_image(Call& c, const Convolution& v, int products) {
  for (int64_t product = 0; product < v.input.size(0) * products; ++product) cublas_workspace(c);
}

void forward_group(Call& c, const Convolution& v, const Sizes& output_part) {
  const DType dtype = v.input.dtype();
  const Tensor columns = c.temporary(column_sizes(v), dtype);
  const Tensor ones =
      c.given("bias") ? c.temporary(SizesView(output_part.begin() + 2, output_part.end()), dtype) : Tensor();
  products_of_each_image(c, v, c.given("bias") ? 2 : 1);
}

// --- not transposed

// 3-D ones have no kernels of their own.
bool by_dilated_kernels(const Convolution& v) {
  return v.input.dim() == 5 || std::ranges::any_of(v.dilation, [](int64_t d) { return d != 1; });
}

// One row per element of the kernel, one column per position of the output.
Sizes column_sizes(const Convolution& v, const Sizes& output) {
  return {v.weight.size(1) * positions(v.weight.sizes()), positions(output)};
}

void products_of_images(Call& c, const Convolution& v, const Sizes& output) {
  const Tensor columns = c.temporary(column_sizes(v, output), v.input.dtype());
  products_of_each_image(c, v, 1);
}

// The gradients of one group, from contiguous tensors. `make(i)` gives the i-th its memory.
struct GroupGradients {
  Call& c;
  const Convolution& v;
  const std::vector<char>& wants;
  std::function<const Tensor&(size_t)> make;

  void sum_for_bias(const Tensor& gradient, const Sizes& dims, const Tensor& sums) const {
    reduction_buffers(c, gradient, dims, sums, {.vector = element_size(v.input.dtype()) == 2 ? 8 : 4});
  }

  void plain(const Tensor& incoming) const {
    Tensor columns;
    const auto products = [&] {
      if (!columns.defined()) columns = c.temporary(column_sizes(v, incoming.sizes()), v.input.dtype());
      products_of_each_image(c, v, 1);
    };
    if (wants[0]) {
      make(0);
      products();
    }
    if (wants[2]) sum_for_bias(incoming, {0, 2, 3}, make(2));
    if (!wants[1]) return;
    make(1);
    products();
  }

  void dilated(const Tensor& incoming) const {
    for (size_t i = 0; i < 3; ++i)
      if (wants[i]) make(i);
    Tensor columns;
    if (wants[0] || wants[1]) columns = c.temporary(column_sizes(v, incoming.sizes()), v.input.dtype());
    const Sizes image_sizes(incoming.sizes().begin() + 1, incoming.sizes().end());
    Sizes all_but_channels;
    for (int64_t d = 1; d < int64_t(image_sizes.size()); ++d) all_but_channels.push_back(d);
    for (int64_t image = 0; image < v.input.size(0); ++image) {
      for (size_t i = 0; i < 2; ++i)
        if (wants[i]) cublas_workspace(c);
      if (!wants[2]) continue;
      const Tensor of_image = alias(incoming, image_sizes, contiguous_strides(image_sizes), incoming->offset);
      sum_for_bias(of_image, all_but_channels, c.temporary(Sizes{incoming.size(1)}, v.input.dtype()));
    }
  }
};

}  // namespace

void slow_forward(Call& c, const Convolution& v) {
  const Sizes sizes = seen_as_2d(c.result_tensor()).sizes(), sizes_of_part = part_sizes(sizes, 1, v.groups);
  const Tensor whole_input = c.contiguous(v.input), whole_weight = c.contiguous(v.weight);
  if (v.groups == 1) {
    c.allocate(0);
    return products_of_images(c, v, sizes);
  }
  std::vector<Tensor> parts;
  for (int64_t g = 0; g < v.groups; ++g) {
    const Tensor input = part(c, whole_input, 1, v.groups, g), weight = part(c, whole_weight, 0, v.groups, g);
    parts.push_back(c.temporary(sizes_of_part, v.input.dtype()));
    products_of_images(c, v, sizes_of_part);
  }
  c.allocate(0);
  for (Tensor& made : parts) made.reset();
}

void slow_backward(Call& c, const Convolution& v, const Tensor& incoming) {
  const auto& mask = c["output_mask"].booleans();
  const std::vector<char> wants(mask.begin(), mask.end());
  const Tensor whole_input = c.contiguous(v.input), whole_weight = c.contiguous(v.weight);
  const Sizes result_sizes[3] = {v.input.sizes(), v.weight.sizes(), Sizes{incoming.size(1)}};
  const int64_t joined_along[3] = {1, 0, 0};
  std::vector<Tensor> parts[3];
  const auto make = [&](size_t i) -> const Tensor& {
    if (v.groups == 1) {
      c.allocate(i);
      return c.result_tensor(i);
    }
    return parts[i].emplace_back(
        c.temporary(part_sizes(result_sizes[i], joined_along[i], v.groups), v.input.dtype()));
  };
  const GroupGradients gradients{c, v, wants, make};
  for (int64_t g = 0; g < v.groups; ++g) {
    const Tensor grad = part(c, incoming, 1, v.groups, g), input = part(c, whole_input, 1, v.groups, g);
    const Tensor weight = part(c, whole_weight, 0, v.groups, g), copy = c.contiguous(grad);
    by_dilated_kernels(v) ? gradients.dilated(copy) : gradients.plain(copy);
  }
  if (v.groups == 1) return;
  for (size_t i = 0; i < 3; ++i)
    if (wants[i]) c.allocate(i);
  for (size_t i = 3; i-- > 0;)
    for (Tensor& made : parts[i]) made.reset();
}

void slow_transposed_forward(Call& c, const Convolution& v) {
  const DType dtype = v.input.dtype();
  const Sizes sizes = seen_as_2d(c.result_tensor()).sizes(), sizes_of_part = part_sizes(sizes, 1, v.groups);
  const Tensor whole_input = c.contiguous(v.input), whole_weight = c.contiguous(v.weight);
  if (v.groups == 1) {
    whole_output(c, bytes_at_first(whole_input), bytes_of(sizes, dtype));
    return forward_group(c, v, sizes);
  }
  std::vector<Ref<Storage>> parts;
  for (int64_t g = 0; g < v.groups; ++g) {
    const Tensor input = part(c, whole_input, 1, v.groups, g), weight = part(c, whole_weight, 0, v.groups, g);
    parts.push_back(part_output(c, bytes_at_first(input), bytes_of(sizes_of_part, dtype)));
    forward_group(c, v, sizes_of_part);
  }
  c.allocate(0);
  for (Ref<Storage>& made : parts) made.reset();
}

void slow_transposed_backward(Call& c, const Convolution& v, const Tensor& incoming) {
  const auto& wants = c["output_mask"].booleans();
  const DType dtype = v.input.dtype();
  const Tensor whole_input = c.contiguous(v.input), whole_weight = c.contiguous(v.weight);
  const Sizes result_sizes[3] = {v.input.sizes(), v.weight.sizes(), Sizes{incoming.size(1)}};
  const int64_t joined_along[3] = {1, 0, 0};
  std::vector<Tensor> parts[3];
  const auto make = [&](size_t i) {
    if (!wants[i]) return;
    if (v.groups == 1) return c.allocate(i);
    parts[i].push_back(c.temporary(part_sizes(result_sizes[i], joined_along[i], v.groups), dtype));
  };
  for (int64_t g = 0; g < v.groups; ++g) {
    const Tensor grad = part(c, incoming, 1, v.groups, g), input = part(c, whole_input, 1, v.groups, g);
    const Tensor weight = part(c, whole_weight, 0, v.groups, g);
    if (wants[0]) {
      const Tensor copy = c.contiguous(grad);
      make(0);
      const Tensor columns = c.temporary(column_sizes(v), dtype);
      products_of_each_image(c, v, 1);
    }
    make(1);
    make(2);
    if (!wants[1] && !wants[2]) continue;
    const Tensor copy = c.contiguous(grad);
    const Tensor columns = c.temporary(column_sizes(v), dtype);
    products_of_each_image(c, v, 1);
    if (!wants[2]) continue;
    Sizes all_but_channels{0};
    for (int64_t d = 2; d < copy.dim(); ++d) all_but_channels.push_back(d);
    const Tensor& sums = v.groups == 1 ? c.result_tensor(2) : parts[2].back();
    reduction_buffers(c, copy, all_but_channels, sums, {.vector = element_size(dtype) == 2 ? 8 : 4});
  }
  for (size_t i = 0; i < 3; ++i)
    if (wants[i]) c.allocate(i);
  for (size_t i = 3; i-- > 0;)
    for (Tensor& made : parts[i]) made.reset();
}

}  // namespace metaprof
