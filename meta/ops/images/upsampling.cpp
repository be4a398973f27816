// Making images larger or smaller: nearest, linear and cubic, in one to three dimensions.

#include <fmt/format.h>

#include "meta/ops/images/family.h"
#include "meta/ops/pooling/pooling.h"

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

// Some gradients are row-major whatever the incoming one's format is (ATen/native/UpSampleNearest3d.cpp,
// UpSampleBicubic2d.cpp).
template <size_t dims, bool keeps_format>
void gradient_meta(Call& c) {
  const Tensor& grad = c.tensor("grad_output");
  const Sizes& sizes = c.ints("input_size");
  if (sizes.size() != dims + 2 || grad.sizes().size() != dims + 2)
    c.error(fmt::format("expects {} dimensions, got {} for {}", dims + 2, describe(grad),
                        to_string(SizesView(sizes))));
  c.output(sizes, keeps_format ? pooled_strides(grad, sizes) : contiguous_strides(sizes), grad.dtype());
}

// --- What kernels need besides the result: ATen/native/cuda/UpSample*.cu; recorded with images and gradients
// of all formats, with gaps and expanded.

const Tensor& image_of(const Call& c) { return c.arguments[0].tensor(); }

// Strided accessors take the image as it is.
void image_as_it_is(Call& c) { c.allocate(0); }

void row_major_image(Call& c) {
  c.allocate(0);
  if (c.result_tensor().numel() > 0) c.contiguous(image_of(c));
}

// A result that is not row-major is copied from one that is.
void row_major_image_and_result(Call& c) {
  c.allocate(0);
  const Tensor& result = c.result_tensor();
  if (result.numel() == 0) return;
  const Tensor row_major = result->contiguous ? Tensor() : c.temporary(result.sizes(), result.dtype());
  c.contiguous(image_of(c));
}

// With few channels the row-major kernel is preferred, also for images in channels_last.
bool by_channels_last(const Tensor& image, int64_t least_channels) {
  return suggested_format(image) != MemoryFormat::contiguous && image.size(1) >= least_channels;
}

// An image of the result's sizes is only copied there.
void image_in_its_format(Call& c) {
  const Tensor& image = image_of(c);
  const bool same_sizes = image.sizes() == c.result_tensor().sizes();
  if (!same_sizes && !by_channels_last(image, 4)) return row_major_image_and_result(c);
  c.allocate(0);
  if (!same_sizes) c.contiguous(image, MemoryFormat::channels_last);
}

// UpSampleBilinear2d.cu: accessors, or from 16 channels on a kernel for channels_last.
void bilinear_image(Call& c) {
  c.allocate(0);
  const Tensor& image = image_of(c);
  if (image.sizes() == c.result_tensor().sizes() || !by_channels_last(image, 16)) return;
  c.contiguous(image, MemoryFormat::channels_last);
}

// UpSampleTrilinear3d.cu: the gradient adds up in a row-major copy of the result.
void trilinear_gradient(Call& c) {
  c.allocate(0);
  if (c.result_tensor().numel() == 0) return;
  const Tensor grad = c.contiguous(image_of(c));
  c.contiguous(c.result_tensor());
}

struct Kernels {
  void (*forward)(Call&);
  void (*backward)(Call&);
  bool gradient_keeps_format = true;
};
constexpr Kernels kNearest1d{row_major_image, row_major_image, false},
    kNearest2d{image_in_its_format, image_in_its_format},
    kNearest3d{row_major_image_and_result, row_major_image, false},
    kLinear{image_as_it_is, row_major_image, false}, kBilinear{bilinear_image, image_in_its_format},
    kTrilinear{image_as_it_is, trilinear_gradient}, kBicubic{image_as_it_is, row_major_image, false},
    kBilinearAntialiased{row_major_image_and_result, row_major_image},
    kBicubicAntialiased{row_major_image_and_result, row_major_image, false};

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
      sizes.push_back(Value(std::trunc(double(input.sizes()[d + 2]) * factors[d])).integer());
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

template <FixedString forward, FixedString backward, size_t dims, bool corners, const Kernels& kernels,
          int64_t taps>
constexpr std::array<Op, 3> upsampling(const Texts& texts) {
  return {{{.schema = texts.schema,
            .summary = "the image at another size",
            .meta = upsample_meta<dims>,
            .host_code = {{DeviceType::cuda, kernels.forward}},
            .derivatives = {{{"self"}, {}, gradient<backward, dims, corners>}},
            .flops = tap_flops<taps>,
            .examples = {texts.example},
            .facts = {.node = texts.node, .autocast = Autocast::fp32}},
           {.schema = texts.vec,
            .summary = "the image at another size, given or by scales",
            .meta = composite(vec_body<forward, corners>),
            .derivatives = by_body,
            .flops = by_body,
            .examples = {texts.vec_example}},
           {.schema = texts.backward,
            .summary = "the gradient at the smaller size",
            .meta = gradient_meta<dims, kernels.gradient_keeps_format>,
            .host_code = {{DeviceType::cuda, kernels.backward}},
            .derivatives = {{{"grad_output"}, {}, gradient_gradient<forward, dims, corners>}},
            .flops = tap_flops<taps>,
            .examples = {texts.backward_example},
            .facts = {.node = texts.node_of_backward}}}};
}

constexpr auto k1d = joined(
    upsampling<"upsample_nearest1d", "upsample_nearest1d_backward", 1, false, kNearest1d, 0>(
        {.schema = "upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
         .vec =
             "upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
         .backward = "upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] "
                     "input_size, float? scales=None) -> Tensor",
         .node = "UpsampleNearest1DBackward0",
         .node_of_backward = "UpsampleNearest1DBackwardBackward0",
         .example = "f32[2,3,4] (8)",
         .vec_example = "f32[2,3,4] None (2.0)",
         .backward_example = "f32[2,3,8] (8) (2 3 4)"}),
    upsampling<"_upsample_nearest_exact1d", "_upsample_nearest_exact1d_backward", 1, false, kNearest1d, 0>(
        {.schema =
             "_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
         .vec = "_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
                "-> Tensor",
         .backward = "_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, "
                     "SymInt[3] input_size, float? scales=None) -> Tensor",
         .node = "UpsampleNearestExact1DBackward0",
         .node_of_backward = "UpsampleNearestExact1DBackwardBackward0",
         .example = "f32[2,3,4] (8)",
         .vec_example = "f32[2,3,4] None (2.0)",
         .backward_example = "f32[2,3,8] (8) (2 3 4)"}),
    upsampling<"upsample_linear1d", "upsample_linear1d_backward", 1, true, kLinear, 2>(
        {.schema = "upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? "
                   "scales=None) -> Tensor",
         .vec = "upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                "scale_factors) -> Tensor",
         .backward = "upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] "
                     "input_size, bool align_corners, float? scales=None) -> Tensor",
         .node = "UpsampleLinear1DBackward0",
         .node_of_backward = "UpsampleLinear1DBackwardBackward0",
         .example = "f32[2,3,4] (8) False",
         .vec_example = "f32[2,3,4] None False (2.0)",
         .backward_example = "f32[2,3,8] (8) (2 3 4) False"}));

constexpr auto k2d = joined(
    upsampling<"upsample_nearest2d", "upsample_nearest2d_backward", 2, false, kNearest2d, 0>(
        {.schema = "upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
                   "scales_w=None) -> Tensor",
         .vec =
             "upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
         .backward = "upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
                     "input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
         .node = "UpsampleNearest2DBackward0",
         .node_of_backward = "UpsampleNearest2DBackwardBackward0",
         .example = "f32[2,3,4,4] (8 6)",
         .vec_example = "f32[2,3,4,4] None (2.0 1.5)",
         .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4)"}),
    upsampling<"_upsample_nearest_exact2d", "_upsample_nearest_exact2d_backward", 2, false, kNearest2d, 0>(
        {.schema = "_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, "
                   "float? scales_w=None) -> Tensor",
         .vec = "_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
                "-> Tensor",
         .backward = "_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, "
                     "SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
         .node = "UpsampleNearestExact2DBackward0",
         .node_of_backward = "UpsampleNearestExact2DBackwardBackward0",
         .example = "f32[2,3,4,4] (8 6)",
         .vec_example = "f32[2,3,4,4] None (2.0 1.5)",
         .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4)"}),
    upsampling<"upsample_bilinear2d", "upsample_bilinear2d_backward", 2, true, kBilinear, 4>(
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
         .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4) False"}),
    upsampling<"_upsample_bilinear2d_aa", "_upsample_bilinear2d_aa_backward", 2, true, kBilinearAntialiased,
               4>(
        {.schema = "_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                   "scales_h=None, float? scales_w=None) -> Tensor",
         .vec = "_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
                "float[]? scale_factors) -> Tensor",
         .backward = "_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
                     "input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
         .node = "UpsampleBilinear2DAaBackward0",
         .node_of_backward = "UpsampleBilinear2DAaBackwardBackward0",
         .example = "f32[2,3,4,4] (8 6) False",
         .vec_example = "f32[2,3,4,4] None False (2.0 1.5)",
         .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4) False"}),
    upsampling<"upsample_bicubic2d", "upsample_bicubic2d_backward", 2, true, kBicubic, 16>(
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
         .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4) False"}),
    upsampling<"_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa_backward", 2, true, kBicubicAntialiased, 16>(
        {.schema = "_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                   "scales_h=None, float? scales_w=None) -> Tensor",
         .vec = "_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
                "float[]? scale_factors) -> Tensor",
         .backward = "_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
                     "input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
         .node = "UpsampleBicubic2DAaBackward0",
         .node_of_backward = "UpsampleBicubic2DAaBackwardBackward0",
         .example = "f32[2,3,4,4] (8 6) False",
         .vec_example = "f32[2,3,4,4] None False (2.0 1.5)",
         .backward_example = "f32[2,3,8,6] (8 6) (2 3 4 4) False"}));

constexpr auto k3d = joined(
    upsampling<"upsample_nearest3d", "upsample_nearest3d_backward", 3, false, kNearest3d, 0>(
        {.schema = "upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
                   "scales_h=None, float? scales_w=None) -> Tensor",
         .vec =
             "upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
         .backward =
             "upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, "
             "float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
         .node = "UpsampleNearest3DBackward0",
         .node_of_backward = "UpsampleNearest3DBackwardBackward0",
         .example = "f32[1,2,2,2,2] (4 4 4)",
         .vec_example = "f32[1,2,2,2,2] None (2.0 2.0 2.0)",
         .backward_example = "f32[1,2,4,4,4] (4 4 4) (1 2 2 2 2)"}),
    upsampling<"_upsample_nearest_exact3d", "_upsample_nearest_exact3d_backward", 3, false, kNearest3d, 0>(
        {.schema = "_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, "
                   "float? scales_h=None, float? scales_w=None) -> Tensor",
         .vec = "_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
                "-> Tensor",
         .backward =
             "_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] "
             "input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
         .node = "UpsampleNearestExact3DBackward0",
         .node_of_backward = "UpsampleNearestExact3DBackwardBackward0",
         .example = "f32[1,2,2,2,2] (4 4 4)",
         .vec_example = "f32[1,2,2,2,2] None (2.0 2.0 2.0)",
         .backward_example = "f32[1,2,4,4,4] (4 4 4) (1 2 2 2 2)"}),
    upsampling<"upsample_trilinear3d", "upsample_trilinear3d_backward", 3, true, kTrilinear, 8>(
        {.schema = "upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? "
                   "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
         .vec = "upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                "scale_factors) -> Tensor",
         .backward = "upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] "
                     "input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? "
                     "scales_w=None) -> Tensor",
         .node = "UpsampleTrilinear3DBackward0",
         .node_of_backward = "UpsampleTrilinear3DBackwardBackward0",
         .example = "f32[1,2,2,2,2] (4 4 4) False",
         .vec_example = "f32[1,2,2,2,2] None False (2.0 2.0 2.0)",
         .backward_example = "f32[1,2,4,4,4] (4 4 4) (1 2 2 2 2) False"}));

}  // namespace

Tables upsampling_operators() {
  static constexpr Records tables[] = {k1d, k2d, k3d};
  return tables;
}

}  // namespace metaprof
