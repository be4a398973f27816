#include "opcount/expected_time.h"

#include <algorithm>
#include <cmath>

#include "core/rounding.h"

namespace metaprof {
namespace {

// What a real device does of what its data sheet says. Each of these is an assumption, with what it follows; none is fitted
// to a measured step.

// Elementwise kernels over 2 to the 29 elements on an H100: 91 % of the bandwidth over f32 and 86 to 89 % over 16 bits;
// before those loaded sixteen bytes at once 76 to 82 % (github.com/pytorch/pytorch/pull/145746, its table).
constexpr double kShareOfBandwidth = 0.9, kShareOfBandwidthInEights = 0.8;

// Products of squares of 2048 to 10240 in PyTorch 2.7 on an H100, on average: 71 % of the dense FLOPs in f16, 75 % in bf16
// and TF32, 76 % in f32; 81 % in the best of them (github.com/zzc0721/torch-performance-test-data/issues/79).
constexpr double kShareOfMatrixEngine = 0.75;

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

// Lanes that compute f32 for each unit that loads and stores. A depthwise kernel loads both factors of every multiply-add
// (aten/src/ATen/native/cuda/DepthwiseConv2d.cu), so a unit feeds one lane half of the time. Lanes of a multiprocessor: the
// table of throughputs in the CUDA programming guide; units: the figures of a multiprocessor in NVIDIA's white papers, 32
// in V100, A100 and H100, 16 in Turing, GA10x and Ada.
int lanes_of_load_unit(int sm) {
  const bool sixteen_units = sm == 75 || sm == 86 || sm == 87 || sm == 89 || sm >= 120;
  const bool sixty_four_lanes = sm < 86;
  return (sixty_four_lanes ? 64 : 128) / (sixteen_units ? 16 : 32);
}

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

// By cuDNN, a convolution of one channel at a time: no product of matrices.
bool is_depthwise_in_cudnn(const Trace& trace, const CallRecord& call) {
  if (call.kernel != Kernel::cudnn) return false;
  for (uint32_t i = 1; i < call.inputs; ++i) {
    const Shape weight = input(trace, call, i);
    if (weight.dims() >= 3 && weight.size(1) == 1 && weight.size(0) > 1) return true;
  }
  return false;
}

// FLOPs per second that the call's kernel reaches; 0: nothing is known of the device.
double flops_reached(const Trace& trace, const CallRecord& call, const Rates& rates) {
  const double most = is_depthwise_in_cudnn(trace, call) ? rates.flops_f32 : rates.flops_of(trace, call);
  if (call.kernel == Kernel::attention)
    return most * (rates.sm >= 90 ? kShareOfAttentionHopper : kShareOfAttention);
  if (call.kernel == Kernel::depthwise) return most / (2 * lanes_of_load_unit(rates.sm));
  const double measured = is_depthwise_in_cudnn(trace, call) ? 0 : rates.measured_flops_of(trace, call);
  const double of_large_products = measured > 0 ? measured : most * kShareOfMatrixEngine;
  if (call.kernel == Kernel::cudnn || call.outputs == 0) return of_large_products;
  const Shape result = input(trace, call, call.inputs);
  return result.dims() < 2 ? of_large_products
                           : of_large_products * share_of_waves(result, rates.multiprocessors);
}

bool reads_or_writes_16_bits(const Trace& trace, const CallRecord& call) {
  for (uint32_t i = 0; i < uint32_t{call.inputs} + call.outputs; ++i) {
    const TensorRecord& tensor = trace.tensors[call.first_tensor + i];
    if (tensor.storage != 0 && is_reduced_floating(tensor.dtype)) return true;
  }
  return false;
}

}  // namespace

double expected_seconds(const Trace& trace, const CallRecord& call, const CallCost& cost,
                        const Rates& rates) {
  if (cost.moved.count == 0 && cost.all.count == 0) return 0;
  double computing = 0, moving = 0;
  if (cost.counted.count > 0) {
    const double reached = flops_reached(trace, call, rates);
    if (reached > 0) computing = static_cast<double>(cost.all.count) / reached;
  }
  const double full = rates.measured_bytes_per_second > 0 ? rates.measured_bytes_per_second
                                                          : rates.bytes_per_second * kShareOfBandwidth;
  if (full > 0) {
    const bool in_eights = rates.loads_eight_bytes && reads_or_writes_16_bits(trace, call);
    const double share = in_eights ? kShareOfBandwidthInEights / kShareOfBandwidth : 1;
    moving = static_cast<double>(cost.moved.count) / (full * share);
  }
  return std::max({computing, moving, kLaunch});
}

}  // namespace metaprof
