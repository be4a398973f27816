// Regions of images, as detectors pool and choose them: torchvision's operators (torchvision/csrc/ops, 0.26; recorded on
// the emulated device: tests/data/captured/vision_operators.py).

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/autograd/modes/autocast.h"
#include "meta/ops/images/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

constexpr std::string_view kPoolTakes =
    "input.dim == 4, rois.dim == 2, pooled_height >= 0, pooled_width >= 0";
constexpr std::string_view kGradientTakes =
    "rois.dim == 2, batch_size >= 0, channels >= 0, height >= 0, width >= 0";

// Rows of `rois` are (image, x1, y1, x2, y2).
Sizes pooled_sizes(const Call& c, int64_t channels) {
  const Tensor &input = c.tensor("input"), &rois = c.tensor("rois");
  if (rois.size(1) != 5 || rois.dtype() != input.dtype())
    c.error(fmt::format("expects an image and regions [N, 5] of one dtype; got {} and {}", describe(input),
                        describe(rois)));
  return {rois.size(0), channels, c.integer("pooled_height"), c.integer("pooled_width")};
}

// Each place of the output has channels of its own.
Sizes pooled_by_position(const Call& c) {
  const int64_t channels = c.tensor("input").size(1),
                places = multiply(c.integer("pooled_height"), c.integer("pooled_width"));
  if (places == 0 || channels % places != 0)
    c.error(fmt::format("expects a multiple of {} channels, got {}", places, channels));
  return pooled_sizes(c, channels / places);
}

void roi_align_meta(Call& c) {
  c.output(pooled_sizes(c, c.tensor("input").size(1)), c.tensor("input").dtype());
}

// The second result says where each element comes from.
template <Sizes (*sizes_of)(const Call&)>
void pool_with_places_meta(Call& c) {
  const Sizes sizes = sizes_of(c);
  c.output(sizes, c.tensor("input").dtype());
  c.output(sizes, DType::i32);
}

Sizes roi_pool_sizes(const Call& c) { return pooled_sizes(c, c.tensor("input").size(1)); }

void pool_cuda(Call& c) {
  c.allocate_all();
  if (c.result_tensor().numel() == 0) return;
  const Tensor input = c.contiguous(c.tensor("input"));
  const Tensor rois = c.contiguous(c.tensor("rois"));
}

void gradient_meta(Call& c) {
  c.output(Sizes{c.integer("batch_size"), c.integer("channels"), c.integer("height"), c.integer("width")},
           c.tensor("grad").dtype());
}

// Kernels read these as contiguous memory, the others by their strides.
void gradient_cuda(Call& c, std::initializer_list<Name> contiguous) {
  c.allocate(0);
  if (c.tensor("grad").numel() == 0) return;
  SmallVector<Tensor, 2> read;
  for (Name name : contiguous) read.push_back(c.contiguous(c.tensor(name)));
}

// All of them compute in 32 bits and give back the image's type (torchvision/csrc/ops/autocast). What was cast for two
// results goes before they are converted, as they have a statement of their own.
void in_fp32(Call& c) {
  const DType dtype = c.tensor("input").dtype();
  cast_arguments(c, {"rois", "input"}, DType::f32);  // of one C++ call, the last argument first
  c.next();
  if (c.results.size() > 1)
    for (Name name : {Name("input"), Name("rois")}) c.arguments[c.index_of(name)] = Value();
  const ResultList made = c.results;
  for (size_t i = made.size(); i-- > 0;) c.results[i] = Value(to(made[i].tensor(), dtype));
}

// Four corners of each point; how many points a region has if the call does not say, only the data tells: at least one.
FlopCount align_flops(const Call& c) {
  const int64_t side = std::max<int64_t>(c.integer("sampling_ratio"), 1);
  return {.own = multiply(multiply(8, multiply(side, side)), c.result_tensor().numel())};
}
FlopCount align_gradient_flops(const Call& c) {
  const int64_t side = std::max<int64_t>(c.integer("sampling_ratio"), 1);
  return {.own = multiply(multiply(8, multiply(side, side)), c.tensor("grad").numel())};
}
FlopCount pool_flops(const Call& c) { return {.own = c.result_tensor().numel()}; }
FlopCount pool_gradient_flops(const Call& c) { return {.own = c.tensor("grad").numel()}; }

Tensor align_gradient(Backward& b) {
  const Sizes& image = b.sizes("input");
  return call<"torchvision::_roi_align_backward">(b.session, b.grad(), b("rois"), b["spatial_scale"],
                                                  b["pooled_height"], b["pooled_width"], image[0], image[1],
                                                  image[2], image[3], b["sampling_ratio"], b["aligned"]);
}

// A function of C++ gets zeros for a result that has no gradient, whether it has one or not (torch/csrc/autograd/custom_function.h,
// materialize_grads).
Tensor gradient_of_places(Backward& b) { return zeros_like(b("result1")); }

template <FixedString backward>
Tensor pool_gradient(Backward& b) {
  const Tensor of_places = gradient_of_places(b);
  const Sizes& image = b.sizes("input");
  return call<backward>(b.session, b.grad(), b("rois"), b("result1"), b["spatial_scale"], b["pooled_height"],
                        b["pooled_width"], image[0], image[1], image[2], image[3]);
}

Tensor align_by_position_gradient(Backward& b) {
  const Tensor of_places = gradient_of_places(b);
  const Sizes& image = b.sizes("input");
  return call<"torchvision::_ps_roi_align_backward">(
      b.session, b.grad(), b("rois"), b("result1"), b["spatial_scale"], b["pooled_height"], b["pooled_width"],
      b["sampling_ratio"], image[0], image[1], image[2], image[3]);
}

constexpr Op kAlign[] = {
    {.schema = "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
               "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
     .summary = "regions of an image at one size, by bilinear interpolation",
     .meta = roi_align_meta,
     .host_code = {{DeviceType::cuda, pool_cuda}},
     .derivatives = {{{"input"}, {"rois"}, [](Backward& b) { return align_gradient(b); }}},
     .flops = align_flops,
     .examples = {"f32[2,3,8,8] f32[4,5] 1.0 2 2 2 False", "f32[2,3,8,8] f32[0,5] 0.5 2 2 -1 True"},
     .facts = {.takes = kPoolTakes,
               .node = "CppNode<vision::ops::(anonymous namespace)::ROIAlignFunction>",
               .cast_by = in_fp32}},
    {.schema =
         "torchvision::_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt "
         "pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt "
         "width, int sampling_ratio, bool aligned) -> Tensor",
     .summary = "gradient of roi_align",
     .meta = gradient_meta,
     .host_code = {{DeviceType::cuda, [](Call& c) { gradient_cuda(c, {"rois"}); }}},
     .derivatives = not_differentiable,
     .flops = align_gradient_flops,
     .examples = {"f32[4,3,2,2] f32[4,5] 1.0 2 2 2 3 8 8 2 False"},
     .facts = {.takes = kGradientTakes}}};

constexpr Op kPool[] = {
    {.schema = "torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
               "SymInt pooled_width) -> (Tensor, Tensor)",
     .summary = "regions of an image at one size, by their largest elements",
     .meta = pool_with_places_meta<roi_pool_sizes>,
     .host_code = {{DeviceType::cuda, pool_cuda}},
     .derivatives = {{{"input"},
                      {"rois", "result1"},
                      [](Backward& b) { return pool_gradient<"torchvision::_roi_pool_backward">(b); }}},
     .flops = pool_flops,
     .examples = {"f32[2,3,8,8] f32[4,5] 1.0 2 2"},
     .facts = {.takes = kPoolTakes,
               .node = "CppNode<vision::ops::(anonymous namespace)::ROIPoolFunction>",
               .no_gradient_for = {"result1"},
               .cast_by = in_fp32}},
    {.schema =
         "torchvision::_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, "
         "SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, "
         "SymInt width) -> Tensor",
     .summary = "gradient of roi_pool",
     .meta = gradient_meta,
     .host_code = {{DeviceType::cuda,
                    [](Call& c) {
                      gradient_cuda(c, {"argmax", "rois"});
                    }}},
     .derivatives = not_differentiable,
     .flops = pool_gradient_flops,
     .examples = {"f32[4,3,2,2] f32[4,5] i32[4,3,2,2] 1.0 2 2 2 3 8 8"},
     .facts = {.takes = kGradientTakes}}};

constexpr Op kByPosition[] = {
    {.schema = "torchvision::ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt "
               "pooled_height, SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)",
     .summary = "roi_align with channels of its own for each place of the output",
     .meta = pool_with_places_meta<pooled_by_position>,
     .host_code = {{DeviceType::cuda, pool_cuda}},
     .derivatives = {{{"input"},
                      {"rois", "result1"},
                      [](Backward& b) { return align_by_position_gradient(b); }}},
     .flops = align_flops,
     .examples = {"f32[2,8,8,8] f32[4,5] 1.0 2 2 2"},
     .facts = {.takes = kPoolTakes,
               .node = "CppNode<vision::ops::(anonymous namespace)::PSROIAlignFunction>",
               .no_gradient_for = {"result1"},
               .cast_by = in_fp32}},
    {.schema = "torchvision::_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float "
               "spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, SymInt "
               "batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
     .summary = "gradient of ps_roi_align",
     .meta = gradient_meta,
     .host_code = {{DeviceType::cuda,
                    [](Call& c) {
                      gradient_cuda(c, {"grad", "rois"});
                    }}},
     .derivatives = not_differentiable,
     .flops = align_gradient_flops,
     .examples = {"f32[4,2,2,2] f32[4,5] i32[4,2,2,2] 1.0 2 2 2 2 8 8 8"},
     .facts = {.takes = kGradientTakes}},
    {.schema =
         "torchvision::ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
         "SymInt pooled_width) -> (Tensor, Tensor)",
     .summary = "means of regions with channels of its own for each place of the output",
     .meta = pool_with_places_meta<pooled_by_position>,
     .host_code = {{DeviceType::cuda, pool_cuda}},
     .derivatives = {{{"input"},
                      {"rois", "result1"},
                      [](Backward& b) { return pool_gradient<"torchvision::_ps_roi_pool_backward">(b); }}},
     .flops = pool_flops,
     .examples = {"f32[2,8,8,8] f32[4,5] 1.0 2 2"},
     .facts = {.takes = kPoolTakes,
               .node = "CppNode<vision::ops::(anonymous namespace)::PSROIPoolFunction>",
               .no_gradient_for = {"result1"},
               .cast_by = in_fp32}},
    {.schema =
         "torchvision::_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float "
         "spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, "
         "SymInt height, SymInt width) -> Tensor",
     .summary = "gradient of ps_roi_pool",
     .meta = gradient_meta,
     .host_code = {{DeviceType::cuda,
                    [](Call& c) {
                      gradient_cuda(c, {"grad", "rois"});
                    }}},
     .derivatives = not_differentiable,
     .flops = pool_gradient_flops,
     .examples = {"f32[4,2,2,2] f32[4,5] i32[4,2,2,2] 1.0 2 2 2 8 8 8"},
     .facts = {.takes = kGradientTakes}}};

// --- Boxes that do not overlap too much: sorted by score, a bit for each pair, then those that are left.

void nms_body(Call& c) {
  Session& s = c.session;
  const Tensor &boxes = c.tensor("dets"), &scores = c.tensor("scores");
  if (boxes.size(1) != 4 || boxes.size(0) != scores.size(0))
    c.error(
        fmt::format("expects boxes [N, 4] and N scores; got {} and {}", describe(boxes), describe(scores)));
  Scoped<bool> no_grad(s.modes.grad, false);
  const int64_t count = boxes.size(0), pairs = (count + 63) / 64;
  if (count == 0)
    return c.result(call<"empty.memory_format">(s, Sizes{0}, DType::i64, Value(), boxes.device()));
  const Tensor order = call_all<"sort.stable">(s, scores, true, 0, true)[1];
  const Tensor sorted = call<"contiguous">(s, call<"index_select">(s, boxes, 0, order));
  const Tensor overlap =
      call<"empty.memory_format">(s, Sizes{multiply(count, pairs)}, DType::i64, Value(), boxes.device());
  const Tensor keep = call<"zeros">(s, Sizes{count}, DType::b8, Value(), boxes.device());
  c.result(call<"masked_select">(s, order, keep));
}

constexpr Op kChoice[] = {
    composite_of("torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
                 "boxes by falling score, without those that overlap one before them", nms_body,
                 {"f32[4,4] f32[4] 0.5", "f32[0,4] f32[0] 0.5"},
                 {.takes = "dets.dim == 2, scores.dim == 1",
                  .autocast = Autocast::fp32,
                  .cudagraph_unsafe = true,
                  .reads_data = true})};

}  // namespace

Tables region_operators() {
  static constexpr Records tables[] = {kAlign, kPool, kByPosition, kChoice};
  return tables;
}

}  // namespace metaprof
