#include "opcount/expected_time.h"

#include <algorithm>
#include <cmath>

#include "core/rounding.h"

namespace metaprof {
namespace {

// What a real device does of what its data sheet says. These five are assumptions of one digit, with what each follows;
// none is fitted to a measured step.

// Streams of large arrays come to about nine tenths of the bandwidth (BabelStream's published results on NVIDIA cards).
constexpr double kShareOfBandwidth = 0.9;

// Products of the best shapes come to about four fifths of the dense FLOPs ("maximum achievable matmul FLOPS" in
// S. Bekman's Machine Learning Engineering).
constexpr double kShareOfMatrixEngine = 0.8;

// FlashAttention-2: 35 % of an H100 (abstract of arXiv:2407.08608), 50 to 73 % of an A100 (abstract of arXiv:2307.08691).
constexpr double kShareOfAttentionHopper = 0.35, kShareOfAttention = 0.6;

// What launching a kernel takes the host, for which the device waits if its own work is shorter: some microseconds.
constexpr double kLaunch = 5e-6;

// A usual tile of a product; tiles run in waves, one to a multiprocessor ("Matrix Multiplication Background User's
// Guide", docs.nvidia.com).
constexpr int64_t kTile = 128;

class Shape {
 public:
  Shape(const Trace& trace, const TensorRecord& tensor)
      : sizes_(trace.numbers.data() + tensor.shape), dims_(tensor.storage != 0 ? tensor.dims : 0) {}
  int64_t dims() const { return dims_; }
  /// Negative: from the last one on.
  int64_t size(int64_t dim) const { return sizes_[dim < 0 ? dims_ + dim : dim]; }
  double elements(int64_t dims) const {
    double product = 1;
    for (int64_t d = 0; d < dims; ++d) product *= static_cast<double>(sizes_[d]);
    return product;
  }

 private:
  const int64_t* sizes_;
  int64_t dims_;
};

Shape input(const Trace& trace, const CallRecord& call, uint32_t i) {
  return {trace, trace.tensors[call.first_tensor + i]};
}

// Narrow results have narrower tiles, of 16 at least.
int64_t tile_of(int64_t size) { return std::min(kTile, (size + 15) / 16 * 16); }

// How much of its tiles, and of the last wave's multiprocessors, a product uses.
double share_of_waves(const Shape& result, int multiprocessors) {
  const int64_t rows = result.size(-2), columns = result.size(-1);
  const int64_t tile_rows = tile_of(rows), tile_columns = tile_of(columns);
  if (tile_rows == 0 || tile_columns == 0) return 1;
  const int64_t tiles_down = divide_up(rows, tile_rows), tiles_across = divide_up(columns, tile_columns);
  const double tiles = result.elements(result.dims() - 2) * static_cast<double>(tiles_down * tiles_across);
  const double used =
      result.elements(result.dims()) / (tiles * static_cast<double>(tile_rows * tile_columns));
  if (multiprocessors == 0 || tiles < multiprocessors) return used;  // the inner dimension is divided, too
  const double waves = std::ceil(tiles / multiprocessors);
  return used * tiles / (waves * multiprocessors);
}

// Of products: their inner dimension is one of an argument's. Attention in one kernel has none.
bool is_plain_product(const Trace& trace, const CallRecord& call, const Shape& result) {
  const auto inner =
      static_cast<int64_t>(static_cast<double>(call.counted.count) / 2 / result.elements(result.dims()));
  for (uint32_t i = 0; i < call.inputs; ++i) {
    const Shape shape = input(trace, call, i);
    if (shape.dims() >= 2 && (shape.size(-1) == inner || shape.size(-2) == inner)) return true;
  }
  return false;
}

// A convolution of one channel at a time is no product of matrices.
bool is_depthwise(const Trace& trace, const CallRecord& call) {
  for (uint32_t i = 1; i < call.inputs; ++i) {
    const Shape weight = input(trace, call, i);
    if (weight.dims() >= 3 && weight.size(1) == 1 && weight.size(0) > 1) return true;
  }
  return false;
}

double share_of_engine(const Trace& trace, const CallRecord& call, const Rates& rates) {
  if (call.in_cudnn || call.outputs == 0) return kShareOfMatrixEngine;
  const Shape result = input(trace, call, call.inputs);
  if (result.dims() < 2) return kShareOfMatrixEngine;
  if (is_plain_product(trace, call, result))
    return kShareOfMatrixEngine * share_of_waves(result, rates.multiprocessors);
  return rates.sm >= 90 ? kShareOfAttentionHopper : kShareOfAttention;
}

}  // namespace

double expected_seconds(const Trace& trace, const CallRecord& call, const CallCost& cost,
                        const Rates& rates) {
  if (cost.moved.count == 0 && cost.all.count == 0) return 0;
  double computing = 0, moving = 0;
  if (cost.counted.count > 0) {
    const bool on_cores = call.in_cudnn && is_depthwise(trace, call);
    const double rate = on_cores ? rates.flops_f32 : rates.flops_of(trace, call);
    if (rate > 0)
      computing = static_cast<double>(cost.all.count) / (rate * share_of_engine(trace, call, rates));
  }
  if (rates.bytes_per_second > 0)
    moving = static_cast<double>(cost.moved.count) / (rates.bytes_per_second * kShareOfBandwidth);
  return std::max({computing, moving, kLaunch});
}

}  // namespace metaprof
