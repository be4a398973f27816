// Pooling over fixed windows: maxima and means, in one to three dimensions.

#include "meta/ops/pooling/pooling.h"

#include <fmt/format.h>

#include "meta/ops/pooling/family.h"
#include "meta/ops/pooling/takes.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {

Sizes spread_over(const Call& c, Name name, size_t dims) {
  const Sizes& given = c.ints(name);
  if (given.size() == dims) return given;
  if (given.size() == 1) return Sizes(dims, given[0]);
  c.error(fmt::format("'{}' takes 1 or {} numbers, got {}", name.text, dims, to_string(SizesView(given))));
}

PoolWindow pool_window(const Call& c, size_t dims) {
  PoolWindow window;
  window.kernel = spread_over(c, "kernel_size", dims);
  window.stride = c.ints("stride").empty() ? window.kernel : spread_over(c, "stride", dims);
  window.padding = spread_over(c, "padding", dims);
  const bool dilated = c.op.schema.find(Name("dilation").hash) >= 0;
  window.dilation = dilated ? spread_over(c, "dilation", dims) : Sizes(dims, 1);
  window.ceil_mode = c.boolean("ceil_mode");
  for (size_t d = 0; d < dims; ++d) {
    if (window.kernel[d] < 1 || window.stride[d] < 1 || window.dilation[d] < 1)
      c.error("kernel, stride and dilation must be positive");
    if (window.padding[d] < 0 ||
        window.padding[d] > (multiply(window.kernel[d] - 1, window.dilation[d]) + 1) / 2)
      c.error(fmt::format("padding must lie between 0 and half of the kernel; got {} for a kernel of {}",
                          window.padding[d], window.kernel[d]));
  }
  return window;
}

Sizes pooled_sizes(const Call& c, const Tensor& input, const PoolWindow& window) {
  const size_t dims = window.kernel.size(), all = input.sizes().size();
  if (all != dims + 1 && all != dims + 2)
    c.error(fmt::format("expects {} or {} dimensions, got {}", dims + 1, dims + 2, describe(input)));
  Sizes out = input.sizes();
  for (size_t d = 0; d < dims; ++d) {
    const size_t at = all - dims + d;
    const int64_t reach = multiply(window.kernel[d] - 1, window.dilation[d]) + 1, stride = window.stride[d];
    const int64_t room =
        input.sizes()[at] + 2 * window.padding[d] - reach + (window.ceil_mode ? stride - 1 : 0);
    out[at] = room >= 0 ? room / stride + 1 : 0;
    // The last window begins inside the input or its left padding.
    if (window.ceil_mode && (out[at] - 1) * stride >= input.sizes()[at] + window.padding[d]) --out[at];
    if (out[at] < 1)
      c.error(fmt::format("the window of {} does not fit dimension {} of {}", reach, at, describe(input)));
  }
  return out;
}

Sizes pooled_strides(const Tensor& input, SizesView sizes) {
  return strides_in(suggested_format(input), sizes);
}

Tensor gather_at(const Tensor& grad, const Tensor& indices, size_t dims) {
  Sizes flat = without_last(indices.sizes(), dims);
  flat.push_back(-1);
  const Tensor places = view(indices, flat);
  const Tensor values = view(contiguous(grad, suggested_format(indices)), flat);
  return view(call<"gather">(session_of(grad), values, -1, places), indices.sizes());
}

Tensor zeros_for(Backward& b, Name argument) {
  return call<"zeros">(b.session, b.sizes(argument), b.dtype(argument), Value(), b.shape(argument)->device);
}

Gradients zeros_for_self(Backward& b) { return {zeros_for(b, "self")}; }

Tensor squeezed(const Call& c, const Tensor& t) { return call<"squeeze.dim">(c.session, t, -2); }

namespace {

template <size_t dims>
void max_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = pooled_sizes(c, self, pool_window(c, dims));
  c.output(sizes, pooled_strides(self, sizes), self.dtype());
  c.output(sizes, pooled_strides(self, sizes), DType::i64);
}

// Means in three dimensions are row-major (AveragePool3d.cpp).
template <size_t dims>
void mean_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = pooled_sizes(c, self, pool_window(c, dims));
  c.output(sizes, dims == 3 ? contiguous_strides(sizes) : pooled_strides(self, sizes), self.dtype());
}

void gradient_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(self.sizes(), pooled_strides(self, self.sizes()), self.dtype());
}

void row_major_gradient_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(self.sizes(), self.dtype());
}

// Results first, then what the kernel reads in one format, copied where it is not so.
void results_then_copies(Call& c, MemoryFormat format, std::initializer_list<Name> arguments) {
  c.allocate_all();
  if (c.result_tensor().numel() == 0) return;
  SmallVector<Tensor, 3> copies;
  for (const Name argument : arguments) copies.push_back(c.contiguous(c.tensor(argument), format));
  while (!copies.empty()) copies.pop_back();
}

MemoryFormat format_of_self(const Call& c) { return suggested_format(c.tensor("self")); }

// ATen/native/cuda/DilatedMaxPool2d.cu, DilatedMaxPool3d.cu, AveragePool2d.cu, AveragePool3d.cu: in two
// dimensions gradients take a copy of the input too, of which they only need the sizes.
void pool_cuda(Call& c) { results_then_copies(c, format_of_self(c), {"self"}); }
void max_2d_gradient_cuda(Call& c) {
  results_then_copies(c, format_of_self(c), {"self", "grad_output", "indices"});
}
void max_3d_gradient_cuda(Call& c) { results_then_copies(c, format_of_self(c), {"grad_output", "indices"}); }
void mean_2d_gradient_cuda(Call& c) { results_then_copies(c, format_of_self(c), {"self", "grad_output"}); }
void mean_3d_cuda(Call& c) { results_then_copies(c, MemoryFormat::contiguous, {"self"}); }
void mean_3d_gradient_cuda(Call& c) { results_then_copies(c, MemoryFormat::contiguous, {"grad_output"}); }

// Comparisons or additions: one per element of each window.
template <size_t dims>
FlopCount window_flops(const Call& c) {
  return {.own = multiply(c.result_tensor().numel(), numel(spread_over(c, "kernel_size", dims)))};
}

template <size_t dims>
FlopCount gradient_flops(const Call& c) {
  return {.own = c.tensor("grad_output").numel()};
}

template <FixedString backward>
Gradients max_gradient(Backward& b) {
  return {call<backward>(b.session, b.grad(), b("self"), b["kernel_size"], b["stride"], b["padding"],
                         b["dilation"], b["ceil_mode"], b("result1"))};
}

template <FixedString backward>
Gradients mean_gradient(Backward& b) {
  return {call<backward>(b.session, b.grad(), b("self"), b["kernel_size"], b["stride"], b["padding"],
                         b["ceil_mode"], b["count_include_pad"], b["divisor_override"])};
}

// Gradients of the gradients: both are linear in the incoming one.
template <size_t dims>
Gradients max_gradient_gradient(Backward& b) {
  return {gather_at(b.grad(), b("indices"), dims)};
}
template <FixedString forward>
Gradients mean_gradient_gradient(Backward& b) {
  return {call<forward>(b.session, b.grad(), b["kernel_size"], b["stride"], b["padding"], b["ceil_mode"],
                        b["count_include_pad"], b["divisor_override"])};
}
template <FixedString with_indices>
void max_body(Call& c) {
  Results both = call_all<with_indices>(c.session, c["self"], c["kernel_size"], c["stride"], c["padding"],
                                        c["dilation"], c["ceil_mode"]);
  c.result(both[0]);
}

// One spatial dimension is two, the first of size 1.
Sizes behind(int64_t first, const Sizes& list) {
  if (list.empty()) return {};
  return {first, list[0]};
}

// A window of one dimension; the stride is the kernel where none is given.
struct Window1d {
  Sizes kernel, stride, padding;
};
Window1d window_1d(const Call& c) {
  const PoolWindow window = pool_window(c, 1);
  return {behind(1, window.kernel), behind(1, window.stride), behind(0, window.padding)};
}

void max_1d_with_indices_body(Call& c) {
  pooled_sizes(c, c.tensor("self"), pool_window(c, 1));
  const Window1d w = window_1d(c);
  Results both =
      call_all<"max_pool2d_with_indices">(c.session, unsqueeze(c.tensor("self"), -2), w.kernel, w.stride,
                                          w.padding, behind(1, c.ints("dilation")), c["ceil_mode"]);
  c.result(squeezed(c, both[0]));
  c.result(squeezed(c, both[1]));
}

// Indices are for the gradient and for CUDA; the host does without (MaxPooling.cpp).
void max_1d_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = pooled_sizes(c, self, pool_window(c, 1));
  if (self.is_cuda() || (c.session.modes.grad && self.requires_grad())) {
    Results both = call_all<"max_pool1d_with_indices">(c.session, self, c["kernel_size"], c["stride"],
                                                       c["padding"], c["dilation"], c["ceil_mode"]);
    return c.result(both[0]);
  }
  c.result(c.session.empty(sizes, self.dtype(), self.device()));
}

void mean_1d_body(Call& c) {
  pooled_sizes(c, c.tensor("self"), pool_window(c, 1));
  const Window1d w = window_1d(c);
  const Tensor out = call<"avg_pool2d">(c.session, unsqueeze(c.tensor("self"), -2), w.kernel, w.stride,
                                        w.padding, c["ceil_mode"], c["count_include_pad"]);
  c.result(squeezed(c, out));
}

constexpr Op k1d[] = {
    {.schema = "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] "
               "dilation=1, bool ceil_mode=False) -> Tensor",
     .summary = "maximum of each window",
     .meta = composite(max_1d_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3,8] 3 2 1"}},
    {.schema = "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, "
               "int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     .summary = "maximum of each window, and where it was",
     .meta = composite(max_1d_with_indices_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3,8] 3 2 1"}},
    {.schema = "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool "
               "ceil_mode=False, bool count_include_pad=True) -> Tensor",
     .summary = "mean of each window",
     .meta = composite(mean_1d_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3,8] 3 2 1"}}};

constexpr Op kMax[] = {
    {.schema = "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
               "dilation=1, bool ceil_mode=False) -> Tensor",
     .summary = "maximum of each window",
     .meta = composite(max_body<"max_pool2d_with_indices">),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3,8,8] 3 2 1"}},
    {.schema = "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
               "dilation=1, bool ceil_mode=False) -> Tensor",
     .summary = "maximum of each window",
     .meta = composite(max_body<"max_pool3d_with_indices">),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[1,2,4,4,4] 2"}},
    {.schema = "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
               "int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     .summary = "maximum of each window, and where it was",
     .meta = max_meta<2>,
     .host_code = {{DeviceType::cuda, pool_cuda}},
     .derivatives = {{{"self"}, {"self", "result1"}, max_gradient<"max_pool2d_with_indices_backward">}},
     .flops = window_flops<2>,
     .examples = {"f32[2,3,8,8] 3 2 1"},
     .facts = {.node = "MaxPool2DWithIndicesBackward0", .no_gradient_for = {"result1"}}},
    {.schema = "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, "
               "int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     .summary = "maximum of each window, and where it was",
     .meta = max_meta<3>,
     .host_code = {{DeviceType::cuda, pool_cuda}},
     .derivatives = {{{"self"}, {"self", "result1"}, max_gradient<"max_pool3d_with_indices_backward">}},
     .flops = window_flops<3>,
     .examples = {"f32[1,2,4,4,4] 2"},
     .facts = {.node = "MaxPool3DWithIndicesBackward0", .no_gradient_for = {"result1"}}},
    {.schema = "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] "
               "stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
     .summary = "the gradient at the maxima, else 0",
     .meta = gradient_meta,
     .host_code = {{DeviceType::cuda, max_2d_gradient_cuda}},
     .derivatives = {{{"grad_output"}, {"indices"}, max_gradient_gradient<2>},
                     {{"self"}, {}, zeros_for_self}},
     .flops = gradient_flops<2>,
     .examples = {"f32[2,3,4,4] f32[2,3,8,8] (2 2) (2 2) (0 0) (1 1) False i64[2,3,4,4]"},
     .facts = {.takes = kPlacesTake<2>, .node = "MaxPool2DWithIndicesBackwardBackward0"}},
    {.schema = "max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] "
               "stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
     .summary = "the gradient at the maxima, else 0",
     .meta = gradient_meta,
     .host_code = {{DeviceType::cuda, max_3d_gradient_cuda}},
     .derivatives = {{{"grad_output"}, {"indices"}, max_gradient_gradient<3>},
                     {{"self"}, {}, zeros_for_self}},
     .flops = gradient_flops<2>,
     .examples = {"f32[1,2,2,2,2] f32[1,2,4,4,4] (2) (2) (0) (1) False i64[1,2,2,2,2]"},
     .facts = {.takes = kPlacesTake<3>, .node = "MaxPool3DWithIndicesBackwardBackward0"}}};

constexpr Op kMean[] = {
    {.schema = "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
               "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     .summary = "mean of each window",
     .meta = mean_meta<2>,
     .host_code = {{DeviceType::cuda, pool_cuda}},
     .derivatives = {{{"self"}, {"self"}, mean_gradient<"avg_pool2d_backward">}},
     .flops = window_flops<2>,
     .examples = {"f32[2,3,8,8] 2"},
     .facts = {.node = "AvgPool2DBackward0"}},
    {.schema = "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
               "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     .summary = "mean of each window",
     .meta = mean_meta<3>,
     .host_code = {{DeviceType::cuda, mean_3d_cuda}},
     .derivatives = {{{"self"}, {"self"}, mean_gradient<"avg_pool3d_backward">}},
     .flops = window_flops<3>,
     .examples = {"f32[1,2,4,4,4] 2"},
     .facts = {.node = "AvgPool3DBackward0"}},
    {.schema = "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "
               "int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
     .summary = "the gradient spread over each window",
     .meta = gradient_meta,
     .host_code = {{DeviceType::cuda, mean_2d_gradient_cuda}},
     .derivatives = {{{"grad_output"}, {}, mean_gradient_gradient<"avg_pool2d">},
                     {{"self"}, {}, zeros_for_self}},
     .flops = window_flops<2>,
     .examples = {"f32[2,3,4,4] f32[2,3,8,8] (2 2) (2 2) (0 0) False True None"},
     .facts = {.node = "AvgPool2DBackwardBackward0"}},
    {.schema = "avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, "
               "int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
     .summary = "the gradient spread over each window",
     .meta = row_major_gradient_meta,
     .host_code = {{DeviceType::cuda, mean_3d_gradient_cuda}},
     .derivatives = {{{"grad_output"}, {}, mean_gradient_gradient<"avg_pool3d">},
                     {{"self"}, {}, zeros_for_self}},
     .flops = window_flops<3>,
     .examples = {"f32[1,2,2,2,2] f32[1,2,4,4,4] (2) (2) (0) False True None"},
     .facts = {.node = "AvgPool3DBackwardBackward0"}}};

}  // namespace

Tables pooling_operators() {
  static constexpr Records tables[] = {k1d, kMax, kMean};
  return tables;
}

}  // namespace metaprof
