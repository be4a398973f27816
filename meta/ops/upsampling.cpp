// Making images larger or smaller: nearest, linear and cubic, in one to three dimensions.

#include <fmt/format.h>

#include "meta/ops/all.h"
#include "meta/ops/pooling.h"

namespace metaprof {
namespace {

// One dimension stays row-major; more keep the input's format (aten/src/ATen/native/UpSample*.cpp).
template <size_t dims>
void upsample_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes& wanted = c.ints("output_size");
  if (self.sizes().size() != dims + 2 || wanted.size() != dims)
    c.error(fmt::format("expects {} dimensions and {} sizes, got {} and {}", dims + 2, dims, describe(self),
                        to_string(SizesView(wanted))));
  Sizes sizes{self.size(0), self.size(1)};
  for (size_t d = 0; d < dims; ++d) {
    if (wanted[d] < 1 || self.sizes()[d + 2] < 1)
      c.error(
          fmt::format("sizes must be positive, got {} and {}", describe(self), to_string(SizesView(wanted))));
    sizes.push_back(wanted[d]);
  }
  c.output(sizes, dims == 1 ? contiguous_strides(sizes) : pooled_strides(self, sizes), self.dtype());
}

template <size_t dims>
void gradient_meta(Call& c) {
  const Tensor& grad = c.tensor("grad_output");
  const Sizes& sizes = c.ints("input_size");
  if (sizes.size() != dims + 2 || grad.sizes().size() != dims + 2)
    c.error(fmt::format("expects {} dimensions, got {} for {}", dims + 2, describe(grad),
                        to_string(SizesView(sizes))));
  c.output(sizes, dims == 1 ? contiguous_strides(sizes) : pooled_strides(grad, sizes), grad.dtype());
}

// Kernels that index row-major memory: they take a copy of what is not, and write a row-major result first if
// theirs is not. Those with strided accessors need nothing (`strided`).
struct Layouts {
  bool strided = false;
  int64_t least_channels = 0;  // channels_last is taken as it is from this many channels on; 0: never
};
constexpr Layouts kNearest2d{.least_channels = 4}, kNearest{}, kStrided{.strided = true};

template <const Layouts& layouts>
void image_cuda(Call& c) {
  c.allocate(0);
  const Tensor& image = c.arguments[0].tensor();
  const Tensor& result = c.result_tensor();
  if (layouts.strided || result.numel() == 0) return;
  const bool last = suggested_format(image) != MemoryFormat::contiguous;
  if (last && layouts.least_channels > 0 && image.size(1) >= layouts.least_channels) return;
  const Tensor row_major = result->contiguous ? Tensor() : c.temporary(result.sizes(), result.dtype());
  const Tensor copy = c.contiguous(image);
}

// Calls an operator with what follows the sizes: align_corners where there is such, and one scale per
// dimension.
template <FixedString name, size_t dims, bool corners, class... Before>
Tensor with_scales(Backward& b, Before&&... before) {
  const auto scaled = [&](auto... rest) -> Tensor {
    if constexpr (corners) {
      return call<name>(b.session, std::forward<Before>(before)..., b["align_corners"], rest...);
    } else {
      return call<name>(b.session, std::forward<Before>(before)..., rest...);
    }
  };
  if constexpr (dims == 1) return scaled(b["scales"]);
  if constexpr (dims == 2) return scaled(b["scales_h"], b["scales_w"]);
  if constexpr (dims == 3) return scaled(b["scales_d"], b["scales_h"], b["scales_w"]);
}

template <FixedString backward, size_t dims, bool corners>
Gradients gradient(Backward& b) {
  return {with_scales<backward, dims, corners>(b, b.grad(), b["output_size"], b.sizes("self"))};
}

template <FixedString forward, size_t dims, bool corners>
Gradients gradient_gradient(Backward& b) {
  return {with_scales<forward, dims, corners>(b, b.grad(), b["output_size"])};
}

// The overload "vec": sizes given, or from scale factors (UpSample.cpp, compute_output_size).
template <FixedString name, bool corners>
void vec_body(Call& c) {
  const Tensor& input = c.tensor("input");
  const size_t dims = input.sizes().size() - 2;
  const bool sized = c.given("output_size"), scaled = c.given("scale_factors");
  if (input.dim() < 3 || sized == scaled)
    c.error(fmt::format("expects an input of at least 3 dimensions and either sizes or scales; got {}",
                        describe(input)));
  Sizes sizes = sized ? c.ints("output_size") : Sizes();
  Value scales[3];
  if (scaled) {
    const auto& factors = c["scale_factors"].reals();
    if (factors.size() != dims) c.error(fmt::format("expects {} scales, got {}", dims, factors.size()));
    for (size_t d = 0; d < dims; ++d) {
      sizes.push_back(static_cast<int64_t>(double(input.sizes()[d + 2]) * factors[d]));
      scales[d] = factors[d];
    }
  }
  const auto with = [&](auto... rest) -> Tensor {
    if constexpr (corners) {
      return call<name>(c.session, input, sizes, c["align_corners"], rest...);
    } else {
      return call<name>(c.session, input, sizes, rest...);
    }
  };
  if (dims == 1) return c.result(with(scales[0]));
  if (dims == 2) return c.result(with(scales[0], scales[1]));
  c.result(with(scales[0], scales[1], scales[2]));
}

// Multiply-adds per element of the larger image.
template <int64_t taps>
FlopCount tap_flops(const Call& c) {
  return {.own = multiply(2 * taps, std::max(c.arguments[0].tensor().numel(), c.result_tensor().numel()))};
}

struct Texts {
  std::string_view schema, vec, backward;  ///< schemas of the three operators
  std::string_view node, node_of_backward;
  std::string_view example, vec_example, backward_example;
};

template <FixedString forward, FixedString backward, size_t dims, bool corners, const Layouts& layouts,
          int64_t taps>
void add_family(std::vector<Op>& ops, const Texts& texts) {
  ops.push_back({.schema = texts.schema,
                 .summary = "the image at another size",
                 .meta = upsample_meta<dims>,
                 .kernels = {{DeviceType::cuda, image_cuda<layouts>}},
                 .derivatives = {{{"self"}, {}, gradient<backward, dims, corners>}},
                 .flops = tap_flops<taps>,
                 .examples = {texts.example},
                 .facts = {.node = texts.node, .autocast = Autocast::fp32}});
  ops.push_back({.schema = texts.vec,
                 .summary = "the image at another size, given or by scales",
                 .meta = composite(vec_body<forward, corners>),
                 .kernels = {},
                 .derivatives = by_body,
                 .flops = by_body,
                 .examples = {texts.vec_example}});
  ops.push_back({.schema = texts.backward,
                 .summary = "the gradient at the smaller size",
                 .meta = gradient_meta<dims>,
                 .kernels = {{DeviceType::cuda, image_cuda<layouts>}},
                 .derivatives = {{{"grad_output"}, {}, gradient_gradient<forward, dims, corners>}},
                 .flops = tap_flops<taps>,
                 .examples = {texts.backward_example},
                 .facts = {.node = texts.node_of_backward}});
}

void add_1d(std::vector<Op>& ops) {
  add_family<"upsample_nearest1d", "upsample_nearest1d_backward", 1, false, kNearest, 0>(
      ops,
      {.schema = "upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
       .vec = "upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       .backward = "upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] "
                   "input_size, float? scales=None) -> Tensor",
       .node = "UpsampleNearest1DBackward0",
       .node_of_backward = "UpsampleNearest1DBackwardBackward0",
       .example = "f32[2,3,4] (8)",
       .vec_example = "f32[2,3,4] None (2.0)",
       .backward_example = "f32[2,3,8] (8) (2 3 4)"});
  add_family<"_upsample_nearest_exact1d", "_upsample_nearest_exact1d_backward", 1, false, kNearest, 0>(
      ops, {.schema =
                "_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
            .vec = "_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? "
                   "scale_factors) -> Tensor",
            .backward = "_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, "
                        "SymInt[3] input_size, float? scales=None) -> Tensor",
            .node = "UpsampleNearestExact1DBackward0",
            .node_of_backward = "UpsampleNearestExact1DBackwardBackward0",
            .example = "f32[2,3,4] (8)",
            .vec_example = "f32[2,3,4] None (2.0)",
            .backward_example = "f32[2,3,8] (8) (2 3 4)"});
  add_family<"upsample_linear1d", "upsample_linear1d_backward", 1, true, kStrided, 2>(
      ops, {.schema = "upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? "
                      "scales=None) -> Tensor",
            .vec = "upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                   "scale_factors) -> Tensor",
            .backward = "upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] "
                        "input_size, bool align_corners, float? scales=None) -> Tensor",
            .node = "UpsampleLinear1DBackward0",
            .node_of_backward = "UpsampleLinear1DBackwardBackward0",
            .example = "f32[2,3,4] (8) False",
            .vec_example = "f32[2,3,4] None False (2.0)",
            .backward_example = "f32[2,3,8] (8) (2 3 4) False"});
}

void add_2d(std::vector<Op>& ops) {
  add_family<"upsample_nearest2d", "upsample_nearest2d_backward", 2, false, kNearest2d, 0>(
      ops,
      {.schema = "upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
                 "scales_w=None) -> Tensor",
       .vec = "upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       .backward = "upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
                   "input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
       .node = "UpsampleNearest2DBackward0",
       .node_of_backward = "UpsampleNearest2DBackwardBackward0",
       .example = "f32[2,3,4,4] (8 6)",
       .vec_example = "f32[2,3,4,4] None (2.0 1.5)",
       .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4)"});
  add_family<"_upsample_nearest_exact2d", "_upsample_nearest_exact2d_backward", 2, false, kNearest2d, 0>(
      ops, {.schema = "_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, "
                      "float? scales_w=None) -> Tensor",
            .vec = "_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? "
                   "scale_factors) -> Tensor",
            .backward = "_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, "
                        "SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
            .node = "UpsampleNearestExact2DBackward0",
            .node_of_backward = "UpsampleNearestExact2DBackwardBackward0",
            .example = "f32[2,3,4,4] (8 6)",
            .vec_example = "f32[2,3,4,4] None (2.0 1.5)",
            .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4)"});
  add_family<"upsample_bilinear2d", "upsample_bilinear2d_backward", 2, true, kStrided, 4>(
      ops,
      {.schema = "upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                 "scales_h=None, float? scales_w=None) -> Tensor",
       .vec = "upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
              "scale_factors) -> Tensor",
       .backward = "upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
                   "input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
       .node = "UpsampleBilinear2DBackward0",
       .node_of_backward = "UpsampleBilinear2DBackwardBackward0",
       .example = "f32[2,3,4,4] (8 6) False",
       .vec_example = "f32[2,3,4,4] None False (2.0 1.5)",
       .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4) False"});
  add_family<"_upsample_bilinear2d_aa", "_upsample_bilinear2d_aa_backward", 2, true, kStrided, 4>(
      ops,
      {.schema = "_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                 "scales_h=None, float? scales_w=None) -> Tensor",
       .vec = "_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
              "scale_factors) -> Tensor",
       .backward = "_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
                   "input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
       .node = "UpsampleBilinear2DAaBackward0",
       .node_of_backward = "UpsampleBilinear2DAaBackwardBackward0",
       .example = "f32[2,3,4,4] (8 6) False",
       .vec_example = "f32[2,3,4,4] None False (2.0 1.5)",
       .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4) False"});
  add_family<"upsample_bicubic2d", "upsample_bicubic2d_backward", 2, true, kStrided, 16>(
      ops,
      {.schema = "upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                 "scales_h=None, float? scales_w=None) -> Tensor",
       .vec = "upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
              "scale_factors) -> Tensor",
       .backward = "upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
                   "input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
       .node = "UpsampleBicubic2DBackward0",
       .node_of_backward = "UpsampleBicubic2DBackwardBackward0",
       .example = "f32[2,3,4,4] (8 6) False",
       .vec_example = "f32[2,3,4,4] None False (2.0 1.5)",
       .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4) False"});
  add_family<"_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa_backward", 2, true, kStrided, 16>(
      ops,
      {.schema = "_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                 "scales_h=None, float? scales_w=None) -> Tensor",
       .vec = "_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
              "scale_factors) -> Tensor",
       .backward = "_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
                   "input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
       .node = "UpsampleBicubic2DAaBackward0",
       .node_of_backward = "UpsampleBicubic2DAaBackwardBackward0",
       .example = "f32[2,3,4,4] (8 6) False",
       .vec_example = "f32[2,3,4,4] None False (2.0 1.5)",
       .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4) False"});
}

void add_3d(std::vector<Op>& ops) {
  add_family<"upsample_nearest3d", "upsample_nearest3d_backward", 3, false, kNearest, 0>(
      ops,
      {.schema = "upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
                 "scales_h=None, float? scales_w=None) -> Tensor",
       .vec = "upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       .backward = "upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] "
                   "input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
       .node = "UpsampleNearest3DBackward0",
       .node_of_backward = "UpsampleNearest3DBackwardBackward0",
       .example = "f32[1,2,2,2,2] (4 4 4)",
       .vec_example = "f32[1,2,2,2,2] None (2.0 2.0 2.0)",
       .backward_example = "f32[1,2,4,4,4] (4 4 4) (1 2 2 2 2)"});
  add_family<"_upsample_nearest_exact3d", "_upsample_nearest_exact3d_backward", 3, false, kNearest, 0>(
      ops,
      {.schema = "_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
                 "scales_h=None, float? scales_w=None) -> Tensor",
       .vec = "_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> "
              "Tensor",
       .backward = "_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] "
                   "input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
       .node = "UpsampleNearestExact3DBackward0",
       .node_of_backward = "UpsampleNearestExact3DBackwardBackward0",
       .example = "f32[1,2,2,2,2] (4 4 4)",
       .vec_example = "f32[1,2,2,2,2] None (2.0 2.0 2.0)",
       .backward_example = "f32[1,2,4,4,4] (4 4 4) (1 2 2 2 2)"});
  add_family<"upsample_trilinear3d", "upsample_trilinear3d_backward", 3, true, kStrided, 8>(
      ops,
      {.schema = "upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? "
                 "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
       .vec = "upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
              "scale_factors) -> Tensor",
       .backward =
           "upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, "
           "bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
       .node = "UpsampleTrilinear3DBackward0",
       .node_of_backward = "UpsampleTrilinear3DBackwardBackward0",
       .example = "f32[1,2,2,2,2] (4 4 4) False",
       .vec_example = "f32[1,2,2,2,2] None False (2.0 2.0 2.0)",
       .backward_example = "f32[1,2,4,4,4] (4 4 4) (1 2 2 2 2) False"});
}

}  // namespace

void add_upsampling_operators(std::vector<Op>& ops) {
  add_1d(ops);
  add_2d(ops);
  add_3d(ops);
}

}  // namespace metaprof
