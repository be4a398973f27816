#include "capture/emulator/machine/streams/durations.h"

#include <algorithm>

#include "capture/emulator/machine/environment.h"

namespace metaprof::emulator {
namespace {

// The shares of a data sheet's rates are those of opcount/expected_time.cpp.
constexpr double kShareOfBandwidth = 0.9, kShareOfEngine = 0.75;

// The shortest kernels of an H200 take so long (tests/measured/h200/times).
constexpr double kShortest = 2e-6;

// Four floats of two operands read, and four written: a thread of PyTorch's elementwise kernels (thread_work_size of
// aten/src/ATen/native/cuda/thread_constants.h).
constexpr double kBytesOfThread = 48;

// Pinned memory over 16 lanes: 54.7 GB/s of PCIe 5 on an H200 (tests/measured/h200/rates.json.gz). Earlier generations have half
// of the one after them.
double link_bytes_per_second(int sm) {
  constexpr double fifth = 54.7e9;
  return sm >= 90 ? fifth : sm >= 80 ? fifth / 2 : fifth / 4;
}

// FLOPs of a multiprocessor in one clock, dense, from the white papers of the architectures.
double flops_of_clock(int sm, int element_bytes) {
  const double lanes = sm <= 80 ? 128 : 256;
  if (element_bytes > 4) return sm == 70 || sm == 80 || sm == 90 || sm == 100 ? lanes / 2 : lanes / 64;
  if (element_bytes == 4) return lanes;
  const double of_16_bits = sm >= 120 ? 2048 : sm >= 100 ? 8192 : sm >= 90 ? 4096 : sm == 80 ? 2048 : 1024;
  return element_bytes == 1 && sm >= 89 ? 2 * of_16_bits : of_16_bits;
}

}  // namespace

double seconds_to_take(bool pinned, double bytes) {
  return pinned ? 0.2e-3 + bytes * 0.32e-9 : 33e-6 + bytes * 0.03e-12;
}
double seconds_to_give_back(bool pinned, double bytes) {
  return pinned ? 0.1e-3 + bytes * 0.08e-9 : 27e-6 + bytes * 0.25e-12;
}

Cost cost_of_threads(double threads) { return {.moved = threads * kBytesOfThread}; }

double seconds_of(const Cost& cost) {
  const Description& device = environment().device;
  const double bytes_per_second = 2e3 * device.memory_clock_khz * device.memory_bus_bits / 8;
  const double flops_per_second =
      1e3 * device.clock_khz * device.multiprocessors * flops_of_clock(device.sm, cost.element_bytes);
  double seconds = kShortest;
  if (bytes_per_second > 0) seconds = std::max(seconds, cost.moved / (bytes_per_second * kShareOfBandwidth));
  if (flops_per_second > 0) seconds = std::max(seconds, cost.flops / (flops_per_second * kShareOfEngine));
  return std::max(seconds, cost.over_link / link_bytes_per_second(device.sm));
}

}  // namespace metaprof::emulator
