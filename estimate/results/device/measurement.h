#pragma once
// What was measured on a real device: the facts of a device file (docs/reference/devices.md), with their spread.

#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "meta/platform/hardware.h"
#include "meta/platform/libraries.h"
#include "meta/platform/measured_rates.h"

namespace metaprof {

/// Seconds of one execution, over some samples of it.
struct Sampled {
  double median = 0, least = 0, most = 0;
  int samples = 0;
};

/// A step of a process that takes memory of the device beside the allocator.
struct MemoryGrowth {
  std::string what;  ///< "context"
  Bytes bytes;
};

struct MeasuredCopy {
  std::string
      direction;  ///< "device to device", "host to device", "device to host"; of pinned memory of the host
  Bytes bytes;
  std::optional<Sampled> seconds;  ///< nothing: the device is emulated
};

/// A sum of two tensors.
struct MeasuredElementwise {
  int bytes_per_load = 0;
  Bytes bytes;  ///< of each of the three tensors
  std::optional<Sampled> seconds;
};

struct MeasuredProduct {
  std::string type;  ///< "f32", "tf32", "f16", "bf16", "f64"
  int64_t rows = 0, columns = 0, inner = 0;
  std::optional<Sampled> seconds;
};

/// By cuDNN's first plan, of dense tensors with padding that keeps the size.
struct MeasuredConvolution {
  std::string what;  ///< "forward", "data gradient", "weight gradient"
  std::string type;  ///< "f32" (in TF32), "f16", "bf16"
  std::vector<int64_t> input, weight;
  double flops = 0;
  std::optional<Sampled> seconds;
};

/// Bytes of the driver's units.
struct Granularities {
  Bytes malloc_least;                      ///< what cudaMalloc takes at least, when small pieces find no room
  Bytes malloc_step;                       ///< what one byte more than 2 MiB takes beyond 2 MiB
  Bytes mapped_least, mapped_recommended;  ///< pages of cuMemCreate
};

/// As the management library says; nothing: it does not say.
struct ClocksAndPower {
  std::optional<int64_t> sm_mhz_most, memory_mhz_most;
  std::optional<int64_t> sm_mhz, memory_mhz, celsius;  ///< behind the measurement
  std::optional<double> power_limit_watts;
};

struct DeviceMeasurement {
  Hardware hardware;    ///< what the driver says of the device
  MeasuredRates rates;  ///< what follows from the samples
  std::string like;     ///< the known device of this name; empty: none
  Libraries libraries;  ///< cuda and cudnn; 0: not there
  int cublas = 0;       ///< version; 130100 is 13.1.0
  std::string driver;   ///< "580.65.06"; empty: not said
  int driver_cuda = 0;  ///< newest CUDA that it knows: 13000 is 13.0
  std::string date;     ///< UTC, "2026-01-31T12:00:00Z"
  bool quick = false, emulated = false;
  bool others_counted =
      false;  ///< memory of other processes is in the first growth, as nobody could be asked before it
  std::vector<MemoryGrowth> outside;
  Granularities granularities;
  ClocksAndPower clocks;
  std::vector<MeasuredCopy> copies;
  std::vector<MeasuredElementwise> elementwise;
  std::vector<MeasuredProduct> products;
  std::vector<MeasuredConvolution> convolutions;  ///< empty: cuDNN is not there
  std::optional<Sampled> launch;                  ///< of a kernel behind another
  std::optional<Sampled> launch_wait;             ///< of a kernel for which the host waits
};

/// What estimates take from the samples.
MeasuredRates rates_of(const DeviceMeasurement& measurement);

}  // namespace metaprof
