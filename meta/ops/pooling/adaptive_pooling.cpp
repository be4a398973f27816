// Pooling to a given output size.

#include <fmt/format.h>

#include "meta/ops/pooling/family.h"
#include "meta/ops/pooling/pooling.h"
#include "meta/ops/pooling/takes.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

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
    if (wanted[d] < 0) c.error("sizes must not be negative, got " + to_string(SizesView(wanted)));
    sizes[sizes.size() - dims + d] = wanted[d];
  }
  return sizes;
}

// In two dimensions channels_last is kept; in three everything is row-major (AdaptiveAveragePooling3d.cu,
// AdaptiveMaxPooling3d.cu).
template <size_t dims>
Sizes strides_of(const Tensor& input, SizesView sizes) {
  return dims == 2 ? pooled_strides(input, sizes) : contiguous_strides(sizes);
}

template <size_t dims>
void adaptive_mean_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = adaptive_sizes<dims>(c);
  c.output(sizes, strides_of<dims>(self, sizes), self.dtype());
}

template <size_t dims>
void adaptive_max_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = adaptive_sizes<dims>(c);
  c.output(sizes, strides_of<dims>(self, sizes), self.dtype());
  c.output(sizes, strides_of<dims>(self, sizes), DType::i64);
}

template <size_t dims>
void adaptive_gradient_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(self.sizes(), strides_of<dims>(self, self.sizes()), self.dtype());
}

// Of a batch the kernels read row-major memory, of a single image any (AdaptiveAveragePooling.cu,
// AdaptiveAveragePooling3d.cu, AdaptiveMaxPooling2d.cu, AdaptiveMaxPooling3d.cu).
template <size_t dims>
Tensor row_major_batch(Call& c) {
  const Tensor& self = c.tensor("self");
  return self.sizes().size() == dims + 2 ? c.contiguous(self) : self;
}

// The kernels for channels_last, two-dimensional means alone, read with strides.
template <size_t dims>
bool strided_kernel(const Call& c) {
  return dims == 2 && suggested_format(c.tensor("self")) == MemoryFormat::channels_last;
}

template <size_t dims>
void mean_cuda(Call& c) {
  const Tensor input = strided_kernel<dims>(c) ? c.tensor("self") : row_major_batch<dims>(c);
  c.allocate(0);
}

template <size_t dims>
void adaptive_mean_gradient_cuda(Call& c) {
  c.allocate(0);
  if (!strided_kernel<dims>(c)) c.contiguous(c.tensor("grad_output"));
}

// The kernel's own memory for a result, where that is not row-major.
Tensor row_major_result(Call& c, size_t i) {
  const Tensor& result = c.result_tensor(i);
  return result->contiguous ? Tensor() : c.temporary(result.sizes(), result.dtype());
}

template <size_t dims>
void max_cuda(Call& c) {
  c.allocate_all();
  const Tensor values = row_major_result(c, 0), indices = row_major_result(c, 1);
  const Tensor input = row_major_batch<dims>(c);
}

void adaptive_max_gradient_cuda(Call& c) {
  c.allocate(0);
  const Tensor grad = c.contiguous(c.tensor("grad_output"));
  const Tensor indices = c.contiguous(c.tensor("indices"));
  const Tensor result = row_major_result(c, 0);
}

// To a single position it is a mean; channels_last strides are put on that by hand
// (AdaptiveAveragePooling.cpp).
template <size_t dims, FixedString general>
void mean_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = adaptive_sizes<dims>(c), wanted = spread_over(c, "output_size", dims);
  if (wanted != Sizes(dims, 1)) return c.result(call<general>(c.session, self, wanted));
  Sizes last;
  for (int64_t d = 1; d <= int64_t(dims); ++d) last.push_back(-d);
  const Tensor out = call<"mean.dim">(c.session, self, last, true);
  if (!suggests_channels_last(self.sizes(), self.strides())) return c.result(out);
  Sizes strides(dims + 2, self.size(1));
  strides[1] = 1;
  c.result(call<"as_strided_">(c.session, out, sizes, strides));
}

void adaptive_mean_1d_body(Call& c) {
  adaptive_sizes<1>(c);
  const Sizes size{1, c.ints("output_size")[0]};
  c.result(squeezed(c, call<"adaptive_avg_pool2d">(c.session, unsqueeze(c.tensor("self"), -2), size)));
}

void adaptive_max_1d_body(Call& c) {
  adaptive_sizes<1>(c);
  const Sizes size{1, c.ints("output_size")[0]};
  Results both = call_all<"adaptive_max_pool2d">(c.session, unsqueeze(c.tensor("self"), -2), size);
  const Tensor indices = squeezed(c, both[1]);
  c.result(squeezed(c, both[0]));
  c.result(indices);
}

// Where the output is 1 per dimension and what each element is compared with: the input once.
template <FixedString backward>
Gradients adaptive_mean_gradient(Backward& b) {
  return {call<backward>(b.session, b.grad(), b("self"))};
}
template <FixedString backward>
Gradients adaptive_max_gradient(Backward& b) {
  return {call<backward>(b.session, b.grad(), b("self"), b("result1"))};
}
template <FixedString forward, size_t dims>
Gradients adaptive_mean_gradient_gradient(Backward& b) {
  const Sizes& sizes = b.sizes("grad_output");
  return {call<forward>(b.session, b.grad(), Sizes(sizes.end() - int64_t(dims), sizes.end()))};
}
template <size_t dims>
Gradients adaptive_max_gradient_gradient(Backward& b) {
  return {gather_at(b.grad(), b("indices"), dims)};
}
constexpr std::string_view mean = "means over windows that cover the input evenly";
constexpr Op kWrappers[] = {
    composite_of("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", mean,
                 adaptive_mean_1d_body, {"f32[2,3,8] 3"}),
    composite_of("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", mean,
                 mean_body<2, "_adaptive_avg_pool2d">, {"f32[2,3,8,8] (3 2)"}),
    composite_of("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", mean,
                 mean_body<3, "_adaptive_avg_pool3d">, {"f32[1,2,4,4,4] 1"}),
    composite_of("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
                 "maxima over windows that cover the input evenly", adaptive_max_1d_body, {"f32[2,3,8] 3"})};

template <size_t dims>
constexpr Op mean_operator(std::string_view schema, std::string_view example, std::string_view node,
                           Formula gradient) {
  return {.schema = schema,
          .summary = "adaptive mean to more than one position",
          .meta = adaptive_mean_meta<dims>,
          .host_code = {{DeviceType::cuda, mean_cuda<dims>}},
          .derivatives = {{{"self"}, {"self"}, gradient}},
          .flops = input_flops,
          .examples = {example},
          .facts = {.node = node}};
}

template <size_t dims>
constexpr Op mean_gradient_operator(std::string_view schema, std::string_view example, std::string_view node,
                                    Formula gradient) {
  return {.schema = schema,
          .summary = "the gradient spread over each window",
          .meta = adaptive_gradient_meta<dims>,
          .host_code = {{DeviceType::cuda, adaptive_mean_gradient_cuda<dims>}},
          .derivatives = {{{"grad_output"}, {}, gradient}, {{"self"}, {}, zeros_for_self}},
          .flops = elementwise_flops<1>,
          .examples = {example},
          .facts = {.takes = dims == 2 ? "grad_output.dim >= 3" : "grad_output.dim >= 4", .node = node}};
}

template <size_t dims>
constexpr Op max_operator(std::string_view schema, std::string_view example, std::string_view node,
                          Formula gradient) {
  return {.schema = schema,
          .summary = "maxima over windows that cover the input evenly, and where they were",
          .meta = adaptive_max_meta<dims>,
          .host_code = {{DeviceType::cuda, max_cuda<dims>}},
          .derivatives = {{{"self"}, {"self", "result1"}, gradient}},
          .flops = input_flops,
          .examples = {example},
          .facts = {.node = node, .no_gradient_for = {"result1"}}};
}

template <size_t dims>
constexpr Op max_gradient_operator(std::string_view schema, std::string_view example, std::string_view node) {
  return {.schema = schema,
          .summary = "the gradient at the maxima, else 0",
          .meta = adaptive_gradient_meta<dims>,
          .host_code = {{DeviceType::cuda, adaptive_max_gradient_cuda}},
          .derivatives = {{{"grad_output"}, {"indices"}, adaptive_max_gradient_gradient<dims>},
                          {{"self"}, {}, zeros_for_self}},
          .flops = [](const Call& c) -> FlopCount { return {.own = c.tensor("grad_output").numel()}; },
          .examples = {example},
          .facts = {.takes = kPlacesTake<dims>, .node = node}};
}

constexpr Op kAdaptivePooling[] = {
    mean_operator<2>("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
                     "f32[2,3,8,8] (3 2)", "AdaptiveAvgPool2DBackward0",
                     adaptive_mean_gradient<"_adaptive_avg_pool2d_backward">),
    mean_operator<3>("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", "f32[1,2,4,4,4] 2",
                     "AdaptiveAvgPool3DBackward0", adaptive_mean_gradient<"_adaptive_avg_pool3d_backward">),
    mean_gradient_operator<2>("_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
                              "f32[2,3,2,2] f32[2,3,8,8]", "AdaptiveAvgPool2DBackwardBackward0",
                              adaptive_mean_gradient_gradient<"_adaptive_avg_pool2d", 2>),
    mean_gradient_operator<3>("_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor",
                              "f32[1,2,2,2,2] f32[1,2,4,4,4]", "AdaptiveAvgPool3DBackwardBackward0",
                              adaptive_mean_gradient_gradient<"_adaptive_avg_pool3d", 3>),
    max_operator<2>("adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
                    "f32[2,3,8,8] (3 2)", "AdaptiveMaxPool2DBackward0",
                    adaptive_max_gradient<"adaptive_max_pool2d_backward">),
    max_operator<3>("adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
                    "f32[1,2,4,4,4] 2", "AdaptiveMaxPool3DBackward0",
                    adaptive_max_gradient<"adaptive_max_pool3d_backward">),
    max_gradient_operator<2>(
        "adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        "f32[2,3,2,2] f32[2,3,8,8] i64[2,3,2,2]", "AdaptiveMaxPool2DBackwardBackward0"),
    max_gradient_operator<3>(
        "adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        "f32[1,2,2,2,2] f32[1,2,4,4,4] i64[1,2,2,2,2]", "AdaptiveMaxPool3DBackwardBackward0")};

}  // namespace

Tables adaptive_pooling_operators() {
  static constexpr Records tables[] = {kWrappers, kAdaptivePooling};
  return tables;
}

}  // namespace metaprof
