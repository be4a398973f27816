// Pooling over random windows, and putting pooled values back to their places.

#include <fmt/format.h>

#include "meta/op/versions.h"
#include "meta/ops/pooling/family.h"
#include "meta/ops/pooling/pooling.h"
#include "meta/ops/pooling/takes.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

template <size_t dims>
void fractional_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes kernel = spread_over(c, "kernel_size", dims), wanted = spread_over(c, "output_size", dims);
  const size_t all = self.sizes().size();
  if (all != dims + 1 && all != dims + 2)
    c.error(fmt::format("expects {} or {} dimensions, got {}", dims + 1, dims + 2, describe(self)));
  Sizes sizes = self.sizes();
  for (size_t d = 0; d < dims; ++d) {
    if (wanted[d] < 1 || wanted[d] + kernel[d] - 1 > sizes[all - dims + d])
      c.error(fmt::format("{} windows of {} do not fit into dimension {} of {}", wanted[d], kernel[d],
                          all - dims + d, describe(self)));
    sizes[all - dims + d] = wanted[d];
  }
  c.output(sizes, self.dtype());
  c.output(sizes, DType::i64);
}

// The input is made row-major after the results have memory.
void fractional_cuda(Call& c) {
  c.allocate_all();
  const Tensor input = c.contiguous(c.tensor("self"));
}

// Two dimensions read a row-major gradient, three take it as it lies (FractionalMaxPool2d.cu, FractionalMaxPool3d.cu).
template <size_t dims>
void fractional_gradient_cuda(Call& c) {
  const Tensor grad = dims == 2 ? c.contiguous(c.tensor("grad_output")) : c.tensor("grad_output");
  c.allocate(0);
}

template <FixedString backward>
Gradients fractional_gradient(Backward& b) {
  return {Tensor(
      call<backward>(b.session, b.grad(), b("self"), b["kernel_size"], b["output_size"], b("result1")))};
}

template <size_t dims>
Gradients gathered(Backward& b) {
  return {gather_at(b.grad(), b("indices"), dims)};
}

template <size_t dims>
constexpr Op fractional(std::string_view schema, std::string_view example, std::string_view node,
                        Formula gradient) {
  return {.schema = schema,
          .summary = "maxima of windows at random places",
          .meta = fractional_meta<dims>,
          .host_code = {{DeviceType::cuda, fractional_cuda}},
          .derivatives = {{{"self"}, {"self", "result1"}, gradient}},
          .flops = [](const Call& c) -> FlopCount {
            return {.own = multiply(c.result_tensor().numel(), numel(spread_over(c, "kernel_size", dims)))};
          },
          .examples = {example},
          .facts = {.node = node, .no_gradient_for = {"result1"}}};
}

template <size_t dims>
constexpr Op fractional_backward(std::string_view schema, std::string_view example, std::string_view node) {
  return {.schema = schema,
          .summary = "the gradient at the maxima, else 0",
          .meta = [](Call& c) { c.output(c.tensor("self").sizes(), c.tensor("self").dtype()); },
          .host_code = {{DeviceType::cuda, fractional_gradient_cuda<dims>}},
          .derivatives = {{{"grad_output"}, {"indices"}, gathered<dims>}, {{"self"}, {}, zeros_for_self}},
          .flops = [](const Call& c) -> FlopCount { return {.own = c.tensor("grad_output").numel()}; },
          .examples = {example},
          .facts = {.takes = kPlacesTake<dims>, .node = node}};
}

template <size_t dims>
void unpool_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &indices = c.tensor("indices");
  const size_t all = self.sizes().size();
  if (all != dims + 1 && all != dims + 2)
    c.error(fmt::format("expects {} or {} dimensions, got {}", dims + 1, dims + 2, describe(self)));
  if (indices.dtype() != DType::i64 || indices.sizes() != self.sizes())
    c.error(fmt::format("each element needs an i64 index; got {} and {}", describe(self), describe(indices)));
  const Sizes wanted = spread_over(c, "output_size", dims);
  Sizes sizes = self.sizes();
  std::copy(wanted.begin(), wanted.end(), sizes.end() - int64_t(dims));
  // In two dimensions the host keeps channels_last (MaxUnpooling.cpp).
  const bool kept = dims == 2 && !self.is_cuda();
  c.output(sizes, kept ? pooled_strides(self, sizes) : contiguous_strides(sizes), self.dtype());
}

void unpool_cuda(Call& c) {
  const Tensor self = c.contiguous(c.tensor("self")), indices = c.contiguous(c.tensor("indices"));
  c.allocate(0);
}

// From 2.15 on the gradient is taken as it lies, whatever the order of the indices' dimensions (recorded:
// `opinfo/nn.functional.max_unpool2d/41`).
template <size_t dims>
Gradients gathered_as_it_lies(Backward& b) {
  const Tensor& indices = b("indices");
  Sizes flat = without_last(indices.sizes(), dims);
  flat.push_back(-1);
  const Tensor places = view(indices, flat), values = reshape(b.grad(), flat);
  return {view(call<"gather">(b.session, values, -1, places), indices.sizes())};
}

template <size_t dims>
constexpr Op unpool(std::string_view schema, std::string_view example, std::string_view node,
                    Formula gradient) {
  return {.schema = schema,
          .summary = "zeros with self's elements at their indices",
          .meta = unpool_meta<dims>,
          .host_code = {{DeviceType::cuda, unpool_cuda}},
          .derivatives = {{{"self"}, {"indices"}, gradient}},
          .flops = free_of_flops,
          .examples = {example},
          .facts = {.node = node}};
}

constexpr Op unpool_2d(Formula gradient) {
  return unpool<2>("max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
                   "f32[2,3,4,4] i64[2,3,4,4] 8", "MaxUnpool2DBackward0", gradient);
}
constexpr Op unpool_3d(Formula gradient) {
  return unpool<3>(
      "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> "
      "Tensor",
      "f32[1,2,2,2,2] i64[1,2,2,2,2] 4 2 0", "MaxUnpool3DBackward0", gradient);
}

constexpr Op kUnpooling[] = {
    fractional<2>("fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor "
                  "random_samples) -> (Tensor, Tensor)",
                  "f32[2,3,8,8] 2 3 f32[2,3,2]", "FractionalMaxPool2DBackward0",
                  fractional_gradient<"fractional_max_pool2d_backward">),
    fractional<3>("fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor "
                  "random_samples) -> (Tensor, Tensor)",
                  "f32[1,2,4,4,4] 2 2 f32[1,2,3]", "FractionalMaxPool3DBackward0",
                  fractional_gradient<"fractional_max_pool3d_backward">),
    fractional_backward<2>("fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] "
                           "kernel_size, int[2] output_size, Tensor indices) -> Tensor",
                           "f32[2,3,3,3] f32[2,3,8,8] 2 3 i64[2,3,3,3]",
                           "FractionalMaxPool2DBackwardBackward0"),
    fractional_backward<3>("fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] "
                           "kernel_size, int[3] output_size, Tensor indices) -> Tensor",
                           "f32[1,2,2,2,2] f32[1,2,4,4,4] 2 2 i64[1,2,2,2,2]",
                           "FractionalMaxPool3DBackwardBackward0"),
    before({2, 15}, unpool_2d(gathered<2>)),
    since({2, 15}, unpool_2d(gathered_as_it_lies<2>)),
    before({2, 15}, unpool_3d(gathered<3>)),
    since({2, 15}, unpool_3d(gathered_as_it_lies<3>))};

}  // namespace

Tables unpooling_operators() {
  static constexpr Records tables[] = {kUnpooling};
  return tables;
}

}  // namespace metaprof
