// Images cut into blocks and put together again, and channels in another order: no arithmetic but col2im's
// sums.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/images/family.h"
#include "meta/ops/pooling/pooling.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

// --- im2col and col2im: [N,C,H,W] as columns [N, C·kernel, positions] and back.

struct Windows {
  Sizes kernel, dilation, padding, stride;
};

Windows windows_of(const Call& c) {
  Windows w{spread_over(c, "kernel_size", 2), spread_over(c, "dilation", 2), spread_over(c, "padding", 2),
            spread_over(c, "stride", 2)};
  for (size_t d = 0; d < 2; ++d)
    if (w.kernel[d] < 1 || w.dilation[d] < 1 || w.stride[d] < 1 || w.padding[d] < 0)
      c.error("kernel, dilation and stride must be positive, padding not negative");
  return w;
}

int64_t positions(const Call& c, const Windows& w, int64_t height, int64_t width) {
  int64_t count = 1;
  for (size_t d = 0; d < 2; ++d) {
    const int64_t size = d == 0 ? height : width;
    const int64_t room = size + multiply(2, w.padding[d]) - multiply(w.dilation[d], w.kernel[d] - 1) - 1;
    if (room < 0) c.error(fmt::format("the window does not fit into an image of {}×{}", height, width));
    count = multiply(count, room / w.stride[d] + 1);
  }
  return count;
}

void im2col_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.dim() != 3 && self.dim() != 4)
    c.error(fmt::format("expects 3 or 4 dimensions, got {}", describe(self)));
  const Windows w = windows_of(c);
  Sizes sizes = without_last(self.sizes(), 3);
  sizes.push_back(multiply(self.size(-3), multiply(w.kernel[0], w.kernel[1])));
  sizes.push_back(positions(c, w, self.size(-2), self.size(-1)));
  c.output(sizes, self.dtype());
}

void col2im_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Windows w = windows_of(c);
  const Sizes image = spread_over(c, "output_size", 2);
  const int64_t kernel = multiply(w.kernel[0], w.kernel[1]);
  if ((self.dim() != 2 && self.dim() != 3) || self.size(-2) % kernel != 0 ||
      self.size(-1) != positions(c, w, image[0], image[1]))
    c.error(fmt::format("expects columns [N, C·{}, {}] for an image of {}×{}, got {}", kernel,
                        positions(c, w, image[0], image[1]), image[0], image[1], describe(self)));
  Sizes sizes = without_last(self.sizes(), 2);
  sizes.push_back(self.size(-2) / kernel);
  sizes.push_back(image[0]);
  sizes.push_back(image[1]);
  c.output(sizes, self.dtype());
}

// The result begins as memory of the input's size and is resized: what is larger moves, what is smaller keeps
// the block (Im2Col.cu, Col2Im.cu; recorded: shapes/layout2d/f32/unfold-…, fold-…).
void resized_result_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t element = element_size(self.dtype());
  const int64_t before = multiply(self.numel(), element);
  const int64_t needed = multiply(c.result_tensor().numel(), element);
  Ref<Storage> first;
  if (needed > before) {
    first = c.temporary_bytes(before);
  } else {
    c.allocate(0, before);
  }
  const Tensor copy = c.contiguous(self);
  c.allocate(0);
  first.reset();
}

Gradients col2im_gradient(Backward& b) {
  return {Tensor(
      call<"im2col">(b.session, b.grad(), b["kernel_size"], b["dilation"], b["padding"], b["stride"]))};
}

Gradients im2col_gradient(Backward& b) {
  const Sizes& sizes = b.sizes("self");
  const Sizes image{sizes[sizes.size() - 2], sizes[sizes.size() - 1]};
  return {
      call<"col2im">(b.session, b.grad(), image, b["kernel_size"], b["dilation"], b["padding"], b["stride"])};
}

// --- Pixels to channels and back.

// Image sizes whose channels and sides were exchanged; f = 1 / factor for the way back.
void shuffle_meta(Call& c, const Sizes& sizes) {
  const Tensor& self = c.tensor("self");
  // The host keeps channels_last (PixelShuffle.cpp), CUDA is row-major.
  c.output(sizes, self.is_cuda() ? contiguous_strides(sizes) : pooled_strides(self, sizes), self.dtype());
}

void pixel_shuffle_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t factor = c.integer("upscale_factor");
  if (self.dim() < 3 || factor < 1 || self.size(-3) % multiply(factor, factor) != 0)
    c.error(fmt::format("the channels of {} do not divide by {}²", describe(self), factor));
  Sizes sizes = self.sizes();
  const size_t n = sizes.size();
  sizes[n - 3] /= factor * factor;
  sizes[n - 2] = multiply(sizes[n - 2], factor);
  sizes[n - 1] = multiply(sizes[n - 1], factor);
  shuffle_meta(c, sizes);
}

void pixel_unshuffle_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t factor = c.integer("downscale_factor");
  if (self.dim() < 3 || factor < 1 || self.size(-2) % factor != 0 || self.size(-1) % factor != 0)
    c.error(fmt::format("height and width of {} do not divide by {}", describe(self), factor));
  Sizes sizes = self.sizes();
  const size_t n = sizes.size();
  sizes[n - 3] = multiply(sizes[n - 3], multiply(factor, factor));
  sizes[n - 2] /= factor;
  sizes[n - 1] /= factor;
  shuffle_meta(c, sizes);
}

// reshape, permute, clone: a copy before the copy if the input has no such view.
void shuffled(Call& c, SizesView split) {
  const Tensor seen = reshape(c.tensor("self"), split);
  c.allocate(0);
}

void pixel_shuffle_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t factor = c.integer("upscale_factor");
  Sizes split = without_last(self.sizes(), 3);
  for (int64_t size : {self.size(-3) / (factor * factor), factor, factor, self.size(-2), self.size(-1)})
    split.push_back(size);
  shuffled(c, split);
}

void pixel_unshuffle_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t factor = c.integer("downscale_factor");
  Sizes split = without_last(self.sizes(), 2);
  for (int64_t size : {self.size(-2) / factor, factor, self.size(-1) / factor, factor}) split.push_back(size);
  shuffled(c, split);
}

// --- Groups of channels interleaved.

void channel_shuffle_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t groups = c.integer("groups");
  if (self.dim() < 3 || groups < 1 || self.size(1) % groups != 0)
    c.error(fmt::format("the channels of {} do not divide into {} groups", describe(self), groups));
  c.output(self.sizes(),
           self.is_cuda() ? contiguous_strides(self.sizes()) : pooled_strides(self, self.sizes()),
           self.dtype());
}

// One group, or groups of one channel, leave everything where it is: the result is the input's memory.
void channel_shuffle_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t groups = c.integer("groups");
  const bool same = self->contiguous && (groups == 1 || groups == self.size(1));
  if (same) {
    c.results[0] = Value(alias(self));
  } else {
    c.allocate(0);
  }
}

constexpr Op moving(std::string_view schema, std::string_view summary, void (*meta)(Call&),
                    void (*kernel)(Call&), Formula gradient, std::string_view example) {
  return {.schema = schema,
          .summary = summary,
          .meta = meta,
          .host_code = {{DeviceType::cuda, kernel}},
          .derivatives = {{{"self"}, {}, gradient}},
          .flops = free_of_flops,
          .examples = {example}};
}

constexpr Op kImageLayout[] = {
    node_named("Im2ColBackward0", moving("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] "
                                         "padding, int[2] stride) -> Tensor",
                                         "windows of an image as columns", im2col_meta, resized_result_cuda,
                                         im2col_gradient, "f32[2,3,6,6] 3 1 1 2")),
    with_flops(
        [](const Call& c) -> FlopCount { return {.own = c.tensor("self").numel()}; },
        node_named("Col2ImBackward0", moving("col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, "
                                             "int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
                                             "columns added back to where they were cut from", col2im_meta,
                                             resized_result_cuda, col2im_gradient, "f32[2,27,9] 6 3 1 1 2"))),
    moving(
        "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", "channels as pixels of a larger image",
        pixel_shuffle_meta, pixel_shuffle_cuda,
        [](Backward& b) { return call<"pixel_unshuffle">(b.session, b.grad(), b["upscale_factor"]); },
        "f32[2,8,3,3] 2"),
    moving(
        "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
        "pixels as channels of a smaller image", pixel_unshuffle_meta, pixel_unshuffle_cuda,
        [](Backward& b) { return call<"pixel_shuffle">(b.session, b.grad(), b["downscale_factor"]); },
        "f32[2,2,4,4] 2"),
    moving(
        "channel_shuffle(Tensor self, SymInt groups) -> Tensor", "channels of all groups interleaved",
        channel_shuffle_meta, channel_shuffle_cuda,
        [](Backward& b) -> Gradients {
          const int64_t groups = b.sizes("self")[1] / b.integer("groups");
          return {call<"channel_shuffle">(b.session, b.grad(), groups)};
        },
        "f32[2,6,3,3] 2")};

}  // namespace

Tables image_layout_operators() {
  static constexpr Records tables[] = {kImageLayout};
  return tables;
}

}  // namespace metaprof
