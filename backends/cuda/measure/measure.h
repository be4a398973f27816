#pragma once
// Measures a device: what a process takes of its memory, and how fast it is.

#include <functional>

#include "estimate/results/device/measurement.h"

namespace metaprof::cuda {

struct MeasureOptions {
  int ordinal = 0;
  bool quick = false;  ///< seconds in place of minutes: fewer shapes and samples
  /// Told how many of all measurements are done; may be empty.
  std::function<void(size_t done, size_t all)> progress;
};

/// The process must not have used the device before. Errors: there is no driver or no such device; a measurement fails.
DeviceMeasurement measure(const MeasureOptions& options);

}  // namespace metaprof::cuda
