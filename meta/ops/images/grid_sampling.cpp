// Sampling an image at the points of a grid, and grids of affine maps.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/images/family.h"
#include "meta/ops/normalization/normalization.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

void check(const Call& c, const Tensor& input, const Tensor& grid, int64_t dims) {
  if (input.dim() != dims || grid.dim() != dims || grid.size(0) != input.size(0) || grid.size(-1) != dims - 2)
    c.error(fmt::format("expects an image of {} dimensions and a grid [N, …, {}]; got {} and {}", dims,
                        dims - 2, describe(input), describe(grid)));
}

// cuDNN samples bilinearly with zeros around and corners aligned (GridSampler.h, cond_cudnn_grid_sampler).
bool uses_cudnn(const Call& c, const Tensor& input, const Tensor& grid) {
  auto takes = [](const Tensor& t) {
    return t.is_cuda() && t.numel() > 0 &&
           (t.dtype() == DType::f32 || t.dtype() == DType::f16 || t.dtype() == DType::f64) &&
           span_of(t.sizes(), t.strides()) <= INT32_MAX;
  };
  return c.integer("interpolation_mode") == 0 && c.integer("padding_mode") == 0 &&
         c.boolean("align_corners") && input.dim() == 4 && input.size(1) <= 1024 && takes(input) &&
         takes(grid);
}

void grid_sampler_body(Call& c) {
  const Tensor &input = c.tensor("input"), &grid = c.tensor("grid");
  check(c, input, grid, input.dim() == 5 ? 5 : 4);
  if (uses_cudnn(c, input, grid)) return c.result(call<"cudnn_grid_sampler">(c.session, input, grid));
  if (input.dim() == 4) {
    return c.result(call<"grid_sampler_2d">(c.session, input, grid, c["interpolation_mode"],
                                            c["padding_mode"], c["align_corners"]));
  }
  c.result(call<"grid_sampler_3d">(c.session, input, grid, c["interpolation_mode"], c["padding_mode"],
                                   c["align_corners"]));
}

Sizes sampled_sizes(const Tensor& input, const Tensor& grid) {
  Sizes sizes{input.size(0), input.size(1)};
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) sizes.push_back(grid.size(d));
  return sizes;
}

template <int64_t dims>
void sampler_meta(Call& c) {
  const Tensor &input = c.arguments[0].tensor(), &grid = c.tensor("grid");
  check(c, input, grid, dims);
  c.output(sampled_sizes(input, grid), input.dtype());
}

void sampler_backward_meta(Call& c) {
  const Tensor &input = c.tensor("input"), &grid = c.tensor("grid");
  const auto& wants = c["output_mask"].booleans();
  output_if(c, wants[0], input.sizes(), input.dtype());
  c.output(grid.sizes(), grid.dtype());  // made whether wanted or not
}

void cudnn_backward_meta(Call& c) {
  const Tensor &input = c.tensor("self"), &grid = c.tensor("grid");
  c.output(input.sizes(), input.dtype());
  c.output(grid.sizes(), grid.dtype());
}

void cudnn_cuda(Call& c) {
  const Tensor grid = c.contiguous(c.tensor("grid"));
  c.allocate_all();
}

template <FixedString backward>
Gradients sampler_gradients(Backward& b) {
  const Value::Booleans wants{b.wants("input"), b.wants("grid")};
  Results gradients = call_all<backward>(b.session, b.grad(), b("input"), b("grid"), b["interpolation_mode"],
                                         b["padding_mode"], b["align_corners"], wants);
  return {gradients[0], gradients[1]};
}

// Weights of 4 (8 in 3-D) corners and their products.
template <int64_t corners>
FlopCount corner_flops(const Call& c) {
  return {.own = multiply(2 * corners, numel(sampled_sizes(c.tensor("input"), c.tensor("grid"))))};
}

// --- The grid of an affine map: a grid of plain coordinates times the maps (AffineGridGenerator.cpp, 2.11).

// Coordinates −1 … 1 along one side; without aligned corners scaled to the pixels' middles.
void coordinates(Call& c, int64_t steps, bool corners, DType dtype) {
  if (steps <= 1) {
    const Tensor zero = c.temporary({}, dtype);
    return;
  }
  Tensor range = c.temporary(Sizes{steps}, dtype);
  if (corners) return;
  Tensor scaled = c.temporary(Sizes{steps}, dtype);
  const Tensor middles = c.temporary(Sizes{steps}, dtype);
  range.reset();
  scaled.reset();
}

Tensor base_grid(Call& c, SizesView image, DType dtype) {
  Sizes sizes{image[0]};
  sizes.append(image.begin() + 2, image.end());
  sizes.push_back(int64_t(image.size()) - 1);
  Tensor base = c.temporary(sizes, dtype);
  for (size_t d = image.size() - 1; d >= 2; --d) coordinates(c, image[d], c.boolean("align_corners"), dtype);
  return base;
}

// The grid's points as rows.
Tensor as_points(const Tensor& grid) {
  const int64_t last = grid.size(-1);
  const Sizes sizes{grid.size(0), grid.numel() / std::max<int64_t>(1, grid.size(0) * last), last};
  return alias(grid, sizes, contiguous_strides(sizes), grid->offset);
}

void affine_meta(Call& c) {
  const Tensor& theta = c.tensor("theta");
  const Sizes& image = c.ints("size");
  const int64_t dims = int64_t(image.size()) - 2;
  if ((dims != 2 && dims != 3) || theta.dim() != 3 || theta.size(0) != image[0] || theta.size(1) != dims ||
      theta.size(2) != dims + 1)
    c.error(fmt::format("expects maps [N, {}, {}] for an image of {}; got {}", dims, dims + 1,
                        to_string(SizesView(image)), describe(theta)));
  Sizes sizes{image[0]};
  sizes.append(image.begin() + 2, image.end());
  sizes.push_back(dims);
  c.output(sizes, theta.dtype());
}

void affine_cuda(Call& c) {
  const Tensor& theta = c.tensor("theta");
  const Tensor base = base_grid(c, c.ints("size"), theta.dtype());
  const Tensor points = bmm(as_points(base), transpose(theta, 1, 2));
  const Sizes& sizes = c.result_tensor().sizes();
  c.results[0] = Value(alias(points, sizes, contiguous_strides(sizes), 0));
}

// linspace_from_neg_one.
Tensor from_minus_one(const Tensor& like, int64_t steps, bool corners) {
  Session& s = session_of(like);
  if (steps <= 1) return call<"scalar_tensor">(s, 0, like.dtype(), Value(), like.device());
  Tensor range = call<"linspace">(s, -1, 1, steps, like.dtype(), Value(), like.device());
  if (corners) return range;
  const Tensor scaled = range * (steps - 1);
  range = scaled / steps;
  return range;
}

// The plain grid by operators: the backward operator is composite, so that its gradient follows from a bmm.
Tensor base_grid_by_operators(const Tensor& like, SizesView image, bool corners) {
  Session& s = session_of(like);
  const int64_t dims = int64_t(image.size()) - 2;
  Sizes sizes{image[0]};
  sizes.append(image.begin() + 2, image.end());
  sizes.push_back(dims + 1);
  Tensor base = call<"empty.memory_format">(s, sizes, like.dtype(), Value(), like.device());
  for (int64_t d = 0; d < dims; ++d) {
    Tensor range = from_minus_one(like, image[size_t(dims + 1 - d)], corners);
    for (int64_t outer = 0; outer < d; ++outer) call<"unsqueeze_">(s, range, -1);
    copy_(select(base, -1, d), range);
  }
  call<"fill_.Scalar">(s, select(base, -1, dims), 1);
  return base;
}

void affine_backward_body(Call& c) {
  const Tensor& grad = c.tensor("grad");
  const Sizes& image = c.ints("size");
  if (image.size() != 4 && image.size() != 5)
    c.error(fmt::format("expects an image of 4 or 5 dimensions, got {}", to_string(SizesView(image))));
  const Tensor base = base_grid_by_operators(grad, image, c.boolean("align_corners"));
  const int64_t dims = base.size(-1) - 1, count = numel(SizesView(image).subspan(2));
  const Tensor points = reshape(grad, Sizes{image[0], count, dims});
  const Tensor rows = transpose(view(base, Sizes{image[0], count, dims + 1}), 1, 2);
  c.result(transpose(bmm(rows, points), 1, 2));
}

constexpr Op kAffine[] = {
    {.schema = "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
     .summary = "where an affine map takes each point of an image",
     .meta = affine_meta,
     .host_code = {{DeviceType::cuda, affine_cuda}},
     .derivatives = {{{"theta"},
                      {},
                      [](Backward& b) {
                        return call<"affine_grid_generator_backward">(b.session, b.grad(), b["size"],
                                                                      b["align_corners"]);
                      }}},
     .flops = free_of_flops,  // the product inside counts
     .examples = {"f32[2,2,3] (2 3 4 5) False"},
     .facts = {.autocast = Autocast::none}},
    {.schema = "affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor",
     .summary = "gradient of an affine map",
     .meta = composite(affine_backward_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,4,5,2] (2 3 4 5) False"}}};

constexpr Op kCudnn[] = {
    {.schema = "cudnn_grid_sampler(Tensor self, Tensor grid) -> Tensor output",
     .summary = "bilinear sampling by cuDNN",
     .meta = sampler_meta<4>,
     .host_code = {{DeviceType::cuda, cudnn_cuda}},
     .derivatives = {{{"self", "grid"},
                      {"grid", "self"},
                      [](Backward& b) -> Gradients {
                        Results gradients = call_all<"cudnn_grid_sampler_backward">(b.session, b("self"),
                                                                                    b("grid"), b.grad());
                        return {gradients[0], gradients[1]};
                      }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 8 * c.result_tensor().numel()}; },
     .examples = {"f32[2,3,4,4] f32[2,5,6,2]"}},
    {.schema = "cudnn_grid_sampler_backward(Tensor self, Tensor grid, Tensor grad_output) -> (Tensor "
               "grad_self, Tensor grad_grid)",
     .summary = "gradients of cudnn_grid_sampler",
     .meta = cudnn_backward_meta,
     .host_code = {{DeviceType::cuda, cudnn_cuda}},
     .derivatives = not_differentiable,
     .flops = [](const Call& c) -> FlopCount { return {.own = 16 * c.tensor("grad_output").numel()}; },
     .examples = {"f32[2,3,4,4] f32[2,5,6,2] f32[2,3,5,6]"}}};

constexpr Op sampler(std::string_view schema, void (*meta)(Call&), Formula gradients,
                     FlopCount (*flops)(const Call&), std::string_view example, std::string_view node) {
  return {.schema = schema,
          .summary = "the image at the points of a grid",
          .meta = meta,
          .derivatives = {{{"input", "grid"}, {"grid", "input"}, gradients}},
          .flops = flops,
          .examples = {example},
          .facts = {.node = node}};
}

constexpr Op sampler_backward(std::string_view schema, FlopCount (*flops)(const Call&),
                              std::string_view example) {
  return {.schema = schema,
          .summary = "gradients of sampling",
          .meta = sampler_backward_meta,
          .derivatives = {{{"grad_output"}, {}, not_implemented},
                          {{"input"}, {}, not_implemented},
                          {{"grid"}, {}, not_implemented}},
          .flops = flops,
          .examples = {example}};
}

constexpr Op kGridSampling[] = {
    {.schema = "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
               "align_corners) -> Tensor",
     .summary = "the image at the points of a grid",
     .meta = composite(grid_sampler_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3,4,4] f32[2,5,6,2] 0 0 False", "f32[2,3,4,4] f32[2,5,6,2] 0 0 True"},
     .facts = {.autocast = Autocast::promote}},
    sampler("grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
            "align_corners) -> Tensor",
            sampler_meta<4>, sampler_gradients<"grid_sampler_2d_backward">, corner_flops<4>,
            "f32[2,3,4,4] f32[2,5,6,2] 0 0 False", "GridSampler2DBackward0"),
    sampler("grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
            "align_corners) -> Tensor",
            sampler_meta<5>, sampler_gradients<"grid_sampler_3d_backward">, corner_flops<8>,
            "f32[1,2,3,3,3] f32[1,2,2,2,3] 0 0 False", "GridSampler3DBackward0"),
    sampler_backward(
        "grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int "
        "padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
        corner_flops<8>, "f32[2,3,5,6] f32[2,3,4,4] f32[2,5,6,2] 0 0 False (True True)"),
    sampler_backward(
        "grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int "
        "padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
        corner_flops<16>, "f32[1,2,2,2,2] f32[1,2,3,3,3] f32[1,2,2,2,3] 0 0 False (True True)")};

}  // namespace

Tables grid_sampling_operators() {
  static constexpr Records tables[] = {kAffine, kCudnn, kGridSampling};
  return tables;
}

}  // namespace metaprof
