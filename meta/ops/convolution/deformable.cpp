// Convolution of an image that is sampled at shifted places: torchvision's operator, by columns
// (torchvision/csrc/ops/cuda/deform_conv2d_kernel.cu, 0.26; recorded on the emulated device:
// tests/data/captured/vision_operators.py).

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/autograd/modes/autocast.h"
#include "meta/ops/convolution/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/library.h"

namespace metaprof {
namespace {

// A call's sizes. Images are computed in parts of at most 32 that divide the batch (kMaxParallelImgs).
struct Deformable {
  int64_t batch, channels, filters, kernel, height, width, groups, images_at_once;

  explicit Deformable(const Call& c) {
    const Tensor &input = c.tensor("input"), &weight = c.tensor("weight");
    batch = input.size(0);
    channels = input.size(1);
    filters = weight.size(0);
    kernel = multiply(weight.size(2), weight.size(3));
    height = side(c, 2, "stride_h", "pad_h", "dilation_h");
    width = side(c, 3, "stride_w", "pad_w", "dilation_w");
    groups = c.integer("groups");
    images_at_once = std::min<int64_t>(batch, 32);
    while (images_at_once > 1 && batch % images_at_once != 0) --images_at_once;
  }

  int64_t parts() const { return batch == 0 ? 0 : batch / images_at_once; }
  Sizes output() const { return {batch, filters, height, width}; }
  // One row for each element of the kernel, one column for each place of some images.
  Sizes columns() const {
    return {multiply(channels, kernel), multiply(images_at_once, multiply(height, width))};
  }
  int64_t products() const { return multiply(parts(), groups); }

 private:
  static int64_t side(const Call& c, int64_t dim, Name stride, Name padding, Name dilation) {
    const int64_t reach = c.integer(dilation) * (c.tensor("weight").size(dim) - 1) + 1;
    return (c.tensor("input").size(dim) + 2 * c.integer(padding) - reach) / c.integer(stride) + 1;
  }
};

void check(const Call& c, const Deformable& v) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight"), &offset = c.tensor("offset"),
               &mask = c.tensor("mask"), &bias = c.tensor("bias");
  if (multiply(weight.size(1), v.groups) != v.channels || v.filters % v.groups != 0)
    c.error(fmt::format("cannot make {} groups of an image {} and a weight {}", v.groups, describe(input),
                        describe(weight)));
  if (v.height <= 0 || v.width <= 0)
    c.error(fmt::format("the kernel {} is larger than the image {}", describe(weight), describe(input)));
  const int64_t shifts = multiply(c.integer("offset_groups"), v.kernel);
  const Sizes wanted{v.batch, multiply(2, shifts), v.height, v.width};
  if (offset.sizes() != wanted)
    c.error(fmt::format("expects offsets {}, got {}", to_string(SizesView(wanted)), describe(offset)));
  const Sizes masked{v.batch, shifts, v.height, v.width};
  if (c.boolean("use_mask") && mask.sizes() != masked)
    c.error(fmt::format("expects a mask {}, got {}", to_string(SizesView(masked)), describe(mask)));
  if (bias.numel() != v.filters)
    c.error(fmt::format("expects {} numbers of bias, got {}", v.filters, describe(bias)));
}

void forward_meta(Call& c) {
  const Deformable v(c);
  check(c, v);
  c.output(v.output(), c.tensor("input").dtype());
}

// The products' results, the image in their order, and the sum with the bias have memory of their own.
void forward_cuda(Call& c) {
  const Deformable v(c);
  const Tensor input = c.contiguous(c.tensor("input")), offset = c.contiguous(c.tensor("offset")),
               weight = c.contiguous(c.tensor("weight")), mask = c.contiguous(c.tensor("mask")),
               bias = c.contiguous(c.tensor("bias"));
  if (v.batch == 0) return c.allocate(0);
  const DType dtype = input.dtype();
  const Tensor sum = c.temporary(v.output(), dtype), product = c.temporary(v.output(), dtype),
               columns = c.temporary(v.columns(), dtype);
  for (int64_t i = 0; i < v.products(); ++i) cublas_workspace(c);
  c.allocate(0);
}

void backward_meta(Call& c) {
  const Deformable v(c);
  check(c, v);
  if (c.tensor("grad").sizes() != v.output())
    c.error(fmt::format("expects a gradient {}, got {}", to_string(SizesView(v.output())),
                        describe(c.tensor("grad"))));
  for (Name name : {Name("input"), Name("weight"), Name("offset"), Name("mask"), Name("bias")}) {
    const Tensor& of = c.tensor(name);
    c.output(of.sizes(), of.dtype());
  }
}

// One group's gradient of some images, channels first: a copy unless there is one image.
Tensor by_channels(Call& c, const Deformable& v, int64_t groups, DType dtype) {
  if (v.images_at_once == 1) return Tensor();
  const int64_t parts = groups == v.groups ? v.parts() : 1;
  const int64_t places = multiply(multiply(v.images_at_once, v.height), v.width);
  return c.temporary(Sizes{parts, groups, v.filters / v.groups, places}, dtype);
}

void gradients_of_inputs(Call& c, const Deformable& v, DType dtype) {
  for (size_t result : {0, 2, 3}) c.allocate(result);
  if (v.batch == 0) return;
  const Tensor columns = c.temporary(v.columns(), dtype);
  for (int64_t i = 0; i < v.products(); ++i) {
    const Tensor incoming = by_channels(c, v, 1, dtype);
    cublas_workspace(c);
  }
}

void gradient_of_weight(Call& c, const Deformable& v, DType dtype) {
  c.allocate(1);
  if (v.batch == 0) return;
  const Tensor incoming = by_channels(c, v, v.groups, dtype);
  const Tensor columns = c.temporary(v.columns(), dtype);
  for (int64_t i = 0; i < v.products(); ++i) cublas_workspace(c);
}

void backward_cuda(Call& c) {
  const Deformable v(c);
  const Tensor grad = c.contiguous(c.tensor("grad")), input = c.contiguous(c.tensor("input")),
               weight = c.contiguous(c.tensor("weight")), offset = c.contiguous(c.tensor("offset")),
               mask = c.contiguous(c.tensor("mask")), bias = c.contiguous(c.tensor("bias"));
  gradients_of_inputs(c, v, input.dtype());
  gradient_of_weight(c, v, input.dtype());
  const Tensor sums = call<"sum.dim_IntList">(c.session, grad, Sizes{0, 2, 3}, false);
  const Tensor ones = c.temporary(bias.sizes(), bias.dtype());
  c.allocate(4);
}

Gradients gradients(Backward& b) {
  Results made = call_all<"torchvision::_deform_conv2d_backward">(
      b.session, b.grad(), b("input"), b("weight"), b("offset"), b("mask"), b("bias"), b["stride_h"],
      b["stride_w"], b["pad_h"], b["pad_w"], b["dilation_h"], b["dilation_w"], b["groups"],
      b["offset_groups"], b["use_mask"]);
  return {made[0], made[1], made[2], made[3], made[4]};
}

// It computes in 32 bits and gives back the image's type (torchvision/csrc/ops/autocast/deform_conv2d_kernel.cpp).
void in_fp32(Call& c) {
  const DType dtype = c.tensor("input").dtype();
  // Of one C++ call, the last argument first.
  cast_arguments(c, {"bias", "mask", "offset", "weight", "input"}, DType::f32);
  c.next();
  c.results[0] = Value(to(c.result_tensor(), dtype));
}

// 8 for the four corners of each sampled point.
int64_t sampling(const Deformable& v) { return multiply(8, multiply(v.parts(), numel(v.columns()))); }
int64_t product(const Deformable& v) {
  return multiply(2 * (v.filters / std::max<int64_t>(v.groups, 1)), multiply(v.parts(), numel(v.columns())));
}
FlopCount forward_flops(const Call& c) {
  const Deformable v(c);
  return {.own = product(v) + sampling(v)};
}
// Columns by a product, their gradients' places and images, and columns once more for the weight's product.
FlopCount backward_flops(const Call& c) {
  const Deformable v(c);
  return {.own = 2 * product(v) + 3 * sampling(v)};
}

constexpr std::string_view kTakes =
    "input.dim == 4, weight.dim == 4, offset.dim == 4, bias.dim == 1, stride_h > 0, stride_w > 0, pad_h >= "
    "0, "
    "pad_w >= 0, dilation_h > 0, dilation_w > 0, groups > 0, offset_groups > 0";

constexpr Op kDeformable[] = {
    {.schema =
         "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
         "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt "
         "dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
     .summary = "weight ⋆ input at shifted places, + bias",
     .meta = forward_meta,
     .host_code = {{DeviceType::cuda, forward_cuda}},
     .derivatives = {{{"input", "weight", "offset", "mask", "bias"},
                      {"input", "weight", "offset", "mask", "bias"},
                      gradients}},
     .flops = forward_flops,
     .examples = {"f32[2,4,6,6] f32[6,4,3,3] f32[2,18,6,6] f32[2,9,6,6] f32[6] 1 1 1 1 1 1 1 1 True",
                  "f32[3,4,6,6] f32[6,2,3,3] f32[3,36,4,4] f32[3,1] f32[6] 1 1 0 0 1 1 2 2 False"},
     .facts = {.takes = kTakes,
               .node = "CppNode<vision::ops::(anonymous namespace)::DeformConv2dFunction>",
               .cast_by = in_fp32}},
    {.schema =
         "torchvision::_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, "
         "Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt "
         "dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> (Tensor, "
         "Tensor, Tensor, Tensor, Tensor)",
     .summary = "gradients of deform_conv2d, all whether wanted or not",
     .meta = backward_meta,
     .host_code = {{DeviceType::cuda, backward_cuda}},
     .derivatives = not_differentiable,
     .flops = backward_flops,
     .examples =
         {"f32[2,6,6,6] f32[2,4,6,6] f32[6,4,3,3] f32[2,18,6,6] f32[2,9,6,6] f32[6] 1 1 1 1 1 1 1 1 True"},
     .facts = {.takes = kTakes}}};

}  // namespace

Tables deformable_operators() {
  static constexpr Records tables[] = {kDeformable};
  return tables;
}

}  // namespace metaprof
