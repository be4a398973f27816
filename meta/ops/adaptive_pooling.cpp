// Pooling to a given output size.

#include <fmt/format.h>

#include "meta/autograd/backward.h"
#include "meta/ops/all.h"
#include "meta/ops/functions.h"
#include "meta/ops/iterator.h"
#include "meta/ops/pooling.h"

namespace metaprof {
namespace {

template <size_t dims>
Sizes adaptive_sizes(const Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.sizes().size() != dims + 1 && self.sizes().size() != dims + 2)
    c.error(fmt::format("expects {} or {} dimensions, got {}", dims + 1, dims + 2, describe(self)));
  const Sizes wanted = spread_over(c, "output_size", dims);
  Sizes sizes = self.sizes();
  for (size_t d = 0; d < dims; ++d) {
    if (wanted[d] < 0)
      c.error(fmt::format("sizes must not be negative, got {}", to_string(SizesView(wanted))));
    sizes[sizes.size() - dims + d] = wanted[d];
  }
  return sizes;
}

template <size_t dims>
void mean_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = adaptive_sizes<dims>(c);
  c.output(sizes, pooled_strides(self, sizes), self.dtype());
}

void gradient_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(self.sizes(), pooled_strides(self, self.sizes()), self.dtype());
}

void gradient_cuda(Call& c) {
  c.allocate(0);
  const Tensor grad = c.contiguous(c.tensor("grad_output"), suggested_format(c.tensor("self")));
}

// To a single position it is a mean; channels_last strides are put on that by hand
// (AdaptiveAveragePooling.cpp).
void mean_2d_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes size = spread_over(c, "output_size", 2);
  if (size[0] != 1 || size[1] != 1)
    return c.result(Tensor(call<"_adaptive_avg_pool2d">(c.session, self, size)));
  adaptive_sizes<2>(c);
  const Tensor out = call<"mean.dim">(c.session, self, Sizes{-1, -2}, true);
  if (!suggests_channels_last(self.sizes(), self.strides())) return c.result(out);
  const int64_t n = self.size(0), channels = self.size(1);
  c.result(Tensor(
      call<"as_strided_">(c.session, out, Sizes{n, channels, 1, 1}, Sizes{channels, 1, channels, channels})));
}

}  // namespace

void add_adaptive_pooling_operators(std::vector<Op>& ops) {
  ops.push_back({.schema = "adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
                 .summary = "means over windows that cover the input evenly",
                 .meta = composite(mean_2d_body),
                 .kernels = {},
                 .derivatives = by_body,
                 .flops = by_body,
                 .examples = {"f32[2,3,8,8] 1", "f32[2,3,8,8] (3 2)"}});
  ops.push_back({.schema = "_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
                 .summary = "adaptive_avg_pool2d to more than one position",
                 .meta = mean_meta<2>,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {"self"},
                                  [](Backward& b) -> Gradients {
                                    return {Tensor(call<"_adaptive_avg_pool2d_backward">(b.session, b.grad(),
                                                                                         b("self")))};
                                  }}},
                 .flops = input_flops,
                 .examples = {"f32[2,3,8,8] (3 2)"},
                 .facts = {.node = "AdaptiveAvgPool2DBackward0"}});
  ops.push_back({.schema = "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
                 .summary = "the gradient spread over each window",
                 .meta = gradient_meta,
                 .kernels = {{DeviceType::cuda, gradient_cuda}},
                 .derivatives = not_differentiable,
                 .flops = elementwise_flops<1>,
                 .examples = {"f32[2,3,2,2] f32[2,3,8,8]"}});
}

}  // namespace metaprof
