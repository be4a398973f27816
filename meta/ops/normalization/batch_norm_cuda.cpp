// What the framework's own batch normalisation does on CUDA
// (aten/src/ATen/native/cuda/Normalization.{cu,cuh}, 2.11): which kernels take a layout, and the scratch
// memory of those for channels_last.

#include <bit>

#include "meta/ops/normalization/batch_norm.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {
namespace {

bool fits_32_bits(const Tensor& t) {
  return t.numel() <= INT32_MAX && span_of(t.sizes(), t.strides()) <= INT32_MAX;
}

// Row-major 2-D input counts as channels_last: its channels lie next to each other.
bool for_channels_last(const Tensor& t) {
  return is_channels_last(t.sizes(), t.strides()) || (t->contiguous && t.strides()[1] == 1);
}

int64_t power_of_two_below(int64_t v) { return int64_t(std::bit_floor(uint64_t(std::max<int64_t>(v, 1)))); }

// flexible_launch_configs: blocks along the channels and along everything else.
struct Grid {
  int64_t x, y;
};
Grid launch_grid(int64_t reduced, int64_t channels) {
  constexpr int64_t tile_width = 32, per_thread = 16, block_size = 512, most_rows = 128;
  int64_t block_x = std::min(power_of_two_below(channels), tile_width);
  const int64_t block_y =
      std::min(power_of_two_below((reduced + per_thread - 1) / per_thread), block_size / block_x);
  if (block_x * block_y != block_size) block_x = std::min(power_of_two_below(channels), block_size / block_y);
  const int64_t rows = std::min((reduced + block_y * per_thread - 1) / (block_y * per_thread), most_rows);
  return {(channels + block_x - 1) / block_x, rows < 8 ? 1 : rows};
}

// Staging and semaphores of a channels_last reduction; freed in reverse.
void staging(Call& c, const Tensor& input, int64_t values, DType accumulated) {
  const int64_t channels = input.size(1);
  const Grid grid = launch_grid(input.numel() / std::max<int64_t>(1, channels), channels);
  if (grid.y <= 1) return;
  const Tensor data = c.temporary(Sizes{values * channels * grid.y}, accumulated);
  const Tensor semaphores = c.temporary(Sizes{grid.x}, DType::i32);
}

// The input as [N, C, rest]: a copy if it has no such view.
Tensor as_rows(Call& c, const Tensor& t) {
  const Sizes rows{t.size(0), t.size(1), numel(SizesView(t.sizes()).subspan(2))};
  Sizes strides;
  if (view_strides(t.sizes(), t.strides(), rows, strides)) return t;
  return call<"clone">(c.session, t, MemoryFormat::contiguous);
}

void statistics(Call& c, const Tensor& input) {
  switch (batch_norm_layout(input)) {
    case BatchNormLayout::contiguous: as_rows(c, input); return;
    case BatchNormLayout::channels_last: return staging(c, input, 4, accumulate_type(input.dtype()));
    case BatchNormLayout::general: break;
  }
  // var_mean over all dimensions but the channels, of 32 bits as its results are (ReduceOps.cpp,
  // std_var_mean_out); Welford's state has 16 bytes.
  Sizes dims{0};
  for (int64_t d = 2; d < input.dim(); ++d) dims.push_back(d);
  const DType accumulated = accumulate_type(input.dtype());
  const Tensor wide = input.dtype() == accumulated ? input : to(input, accumulated);
  reduction_buffers(c, wide, dims, c.result_tensor(2), {.accumulator = 16, .values_per_thread = 2});
}

}  // namespace

BatchNormLayout batch_norm_layout(const Tensor& input) {
  if (!fits_32_bits(input)) return BatchNormLayout::general;
  if (input->contiguous)
    return input.strides()[1] == 1 ? BatchNormLayout::channels_last : BatchNormLayout::contiguous;
  return is_channels_last(input.sizes(), input.strides()) ? BatchNormLayout::channels_last
                                                          : BatchNormLayout::general;
}

bool batch_norm_backward_is_fused(const Tensor& grad, const Tensor& input, bool reduces, bool wants_input) {
  return reduces && wants_input && !for_channels_last(input) && fits_32_bits(input) && fits_32_bits(grad);
}

void native_batch_norm_memory(Call& c, bool training) {
  const Tensor& input = c.tensor("input");
  for (size_t i = 0; i < 3; ++i) c.allocate(i);
  if (training) statistics(c, input);
  const BatchNormLayout layout = batch_norm_layout(input);
  if (layout == BatchNormLayout::contiguous) as_rows(c, input);
  if (layout == BatchNormLayout::general) {  // scale 1 and shift 0 where there are none
    const Tensor scale = c.given("weight") ? Tensor() : c.temporary({}, accumulate_type(input.dtype()));
    const Tensor shift = c.given("bias") ? Tensor() : c.temporary({}, accumulate_type(input.dtype()));
  }
}

namespace {

void fused_backward(Call& c, const Tensor& grad, const Tensor& input) {
  const Tensor rows = as_rows(c, input), grad_rows = as_rows(c, grad);
  c.allocate_all();
}

// Σ dy and Σ dy·(x − mean) per channel, and the gradients of weight and bias.
struct ChannelSums {
  Tensor dy, dy_xmu;
};
ChannelSums reduce(Call& c, const Tensor& grad, const Tensor& input, DType accumulated, bool wants_input) {
  const Sizes channels{input.size(1)};
  ChannelSums sums;
  if (fits_32_bits(grad) && for_channels_last(grad) && for_channels_last(input)) {
    sums = {c.temporary(channels, accumulated), c.temporary(channels, accumulated)};
    // Both gradients are made, wanted or not.
    const bool weighted = c.given("weight");
    const auto& wants = c["output_mask"].booleans();
    Tensor unwanted_weight, unwanted_bias;
    if (wants[1])
      c.allocate(1);
    else if (weighted)
      unwanted_weight = c.temporary(channels, c.tensor("weight").dtype());
    if (wants[2] && c.result_tensor(2).defined())
      c.allocate(2);
    else if (weighted)
      unwanted_bias = c.temporary(channels, c.tensor("weight").dtype());
    staging(c, input, 2, accumulated);
    return sums;
  }
  const Tensor rows = as_rows(c, input), grad_rows = as_rows(c, grad);
  if (wants_input) sums = {c.temporary(channels, accumulated), c.temporary(channels, accumulated)};
  c.allocate(1);
  c.allocate(2);
  return sums;
}

}  // namespace

void native_batch_norm_backward_memory(Call& c, bool train) {
  const Tensor &grad = c.tensor("grad_out"), &input = c.tensor("input");
  const auto& wants = c["output_mask"].booleans();
  const bool reduces = train || wants[1] || wants[2];
  if (batch_norm_backward_is_fused(grad, input, reduces, wants[0])) return fused_backward(c, grad, input);

  // In eval mode cuDNN's forward leaves no statistics: they come from the running ones.
  const DType accumulated = accumulate_type(input.dtype());
  Tensor mean, inverse_deviation;
  const Tensor &save_mean = c.tensor("save_mean"), &running_mean = c.tensor("running_mean");
  if (save_mean.defined() && save_mean.numel() == 0 && reduces && running_mean.dtype() != accumulated)
    mean = to(running_mean, accumulated);
  const Tensor& saved = c.arguments[6].tensor();  // "save_invstd", or "save_var"
  if (saved.defined() && saved.numel() == 0)
    inverse_deviation = c.temporary(Sizes{input.size(1)}, accumulated);

  ChannelSums sums;
  if (reduces) sums = reduce(c, grad, input, accumulated, wants[0]);
  if (!wants[0]) return;
  if (!train) return c.allocate(0);
  const BatchNormLayout layout = batch_norm_layout(input);
  const bool same = layout == batch_norm_layout(grad);
  if (layout == BatchNormLayout::contiguous && same) {
    const Tensor rows = as_rows(c, input), grad_rows = as_rows(c, grad);
    return c.allocate(0);
  }
  const bool general = layout == BatchNormLayout::general || !same;
  const Tensor scale = general && !c.given("weight") ? c.temporary({}, accumulated) : Tensor();
  c.allocate(0);
}

}  // namespace metaprof
