#pragma once
// How long work takes on the device.

#include <functional>
#include <optional>

#include "backends/cuda/device.h"
#include "estimate/results/device/measurement.h"

namespace metaprof::cuda {

struct Effort {
  int samples = 0;
  double seconds_of_sample = 0;  ///< work is repeated until a sample takes about so long
};

/// Each sample is the mean of repeated work between two events on the default stream, where `work` puts it. Once before, the
/// work is done without being timed. Nothing on an emulated device, where the work is done once.
std::optional<Sampled> time_on(const CudaDevice& device, const Effort& effort,
                               const std::function<void()>& work);

/// By the clock of the host: `work` ends with the device's.
std::optional<Sampled> time_on_host(const CudaDevice& device, const Effort& effort,
                                    const std::function<void()>& work);

}  // namespace metaprof::cuda
