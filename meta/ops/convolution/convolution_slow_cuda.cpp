// Convolutions by columns: what the framework does where cuDNN cannot (output padding as large as a stride; bf16 before
// compute capability 8.0). Group by group, then concatenated (aten/src/ATen/native/Convolution.cpp, cuda/ConvolutionMM2d.cu,
// cuda/NaiveDilatedConvolution.cu, cuda/NaiveConvolutionTranspose{2d,3d}.cu, 2.11; recorded:
// opinfo/nn.functional.conv_transpose2d/2, and tests/data/captured/slow_convolutions.py).

#include <algorithm>
#include <vector>

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

// The gradients of input, weight and bias: those of one group are the results, those of several are concatenated in the end.
class GradientsByGroup {
 public:
  GradientsByGroup(Call& c, const Convolution& v, const Tensor& incoming)
      : c_(c),
        v_(v),
        wants_(c["output_mask"].booleans().begin(), c["output_mask"].booleans().end()),
        sizes_{v.input.sizes(), v.weight.sizes(), Sizes{incoming.size(1)}} {}

  bool wanted(size_t i) const { return wants_[i] != 0; }

  // Gives the i-th of the next group its memory; undefined: nobody wants it.
  Tensor make(size_t i) {
    if (!wanted(i)) return Tensor();
    if (v_.groups > 1)
      return parts_[i].emplace_back(
          c_.temporary(part_sizes(sizes_[i], kJoinedAlong[i], v_.groups), v_.input.dtype()));
    c_.allocate(i);
    return c_.result_tensor(i);
  }

  void join() {
    if (v_.groups == 1) return;
    for (size_t i = 0; i < kCount; ++i)
      if (wanted(i)) c_.allocate(i);
    for (size_t i = kCount; i-- > 0;)
      for (Tensor& made : parts_[i]) made.reset();
  }

 private:
  static constexpr size_t kCount = 3;
  static constexpr int64_t kJoinedAlong[kCount] = {1, 0, 0};
  Call& c_;
  const Convolution& v_;
  std::vector<char> wants_;
  Sizes sizes_[kCount];
  std::vector<Tensor> parts_[kCount];
};

// A sum over all but the channels.
void sum_for_bias(Call& c, const Tensor& gradient, const Sizes& dims, const Tensor& sums) {
  reduction_buffers(c, gradient, dims, sums, {.vector = element_size(gradient.dtype()) == 2 ? 8 : 4});
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

// One group, from contiguous tensors.
void plain_backward(Call& c, const Convolution& v, const Tensor& incoming, GradientsByGroup& gradients) {
  Tensor columns;
  const auto products = [&] {
    if (!columns.defined()) columns = c.temporary(column_sizes(v, incoming.sizes()), v.input.dtype());
    products_of_each_image(c, v, 1);
  };
  if (gradients.wanted(0)) {
    gradients.make(0);
    products();
  }
  if (gradients.wanted(2)) sum_for_bias(c, incoming, {0, 2, 3}, gradients.make(2));
  if (!gradients.wanted(1)) return;
  gradients.make(1);
  products();
}

void dilated_backward(Call& c, const Convolution& v, const Tensor& incoming, GradientsByGroup& gradients) {
  for (size_t i = 0; i < 3; ++i) gradients.make(i);
  Tensor columns;
  if (gradients.wanted(0) || gradients.wanted(1))
    columns = c.temporary(column_sizes(v, incoming.sizes()), v.input.dtype());
  const Sizes image_sizes(incoming.sizes().begin() + 1, incoming.sizes().end());
  Sizes all_but_channels;
  for (int64_t d = 1; d < int64_t(image_sizes.size()); ++d) all_but_channels.push_back(d);
  for (int64_t image = 0; image < v.input.size(0); ++image) {
    for (size_t i = 0; i < 2; ++i)
      if (gradients.wanted(i)) cublas_workspace(c);
    if (!gradients.wanted(2)) continue;
    const Tensor of_image = alias(incoming, image_sizes, contiguous_strides(image_sizes), incoming->offset);
    sum_for_bias(c, of_image, all_but_channels, c.temporary(Sizes{incoming.size(1)}, v.input.dtype()));
  }
}

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
  const Tensor whole_input = c.contiguous(v.input), whole_weight = c.contiguous(v.weight);
  GradientsByGroup gradients(c, v, incoming);
  for (int64_t g = 0; g < v.groups; ++g) {
    const Tensor grad = part(c, incoming, 1, v.groups, g), input = part(c, whole_input, 1, v.groups, g);
    const Tensor weight = part(c, whole_weight, 0, v.groups, g), copy = c.contiguous(grad);
    (by_dilated_kernels(v) ? dilated_backward : plain_backward)(c, v, copy, gradients);
  }
  gradients.join();
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
  const DType dtype = v.input.dtype();
  const Tensor whole_input = c.contiguous(v.input), whole_weight = c.contiguous(v.weight);
  GradientsByGroup gradients(c, v, incoming);
  for (int64_t g = 0; g < v.groups; ++g) {
    const Tensor grad = part(c, incoming, 1, v.groups, g), input = part(c, whole_input, 1, v.groups, g);
    const Tensor weight = part(c, whole_weight, 0, v.groups, g);
    if (gradients.wanted(0)) {
      const Tensor copy = c.contiguous(grad);
      gradients.make(0);
      const Tensor columns = c.temporary(column_sizes(v), dtype);
      products_of_each_image(c, v, 1);
    }
    gradients.make(1);
    const Tensor sums = gradients.make(2);
    if (!gradients.wanted(1) && !gradients.wanted(2)) continue;
    const Tensor copy = c.contiguous(grad);
    const Tensor columns = c.temporary(column_sizes(v), dtype);
    products_of_each_image(c, v, 1);
    if (!gradients.wanted(2)) continue;
    Sizes all_but_channels{0};
    for (int64_t d = 2; d < copy.dim(); ++d) all_but_channels.push_back(d);
    sum_for_bias(c, copy, all_but_channels, sums);
  }
  gradients.join();
}

}  // namespace metaprof
