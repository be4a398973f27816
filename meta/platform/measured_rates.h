#pragma once
// What was measured on a device (metaprof measure), beside what its data sheet says.

#include "core/units.h"

namespace metaprof {

/// 0: not measured.
struct MeasuredRates {
  Bytes outside = {};  ///< that a process took outside the allocator: context, kernels, handles of libraries
  double bandwidth = 0;  ///< bytes per second that a large elementwise kernel reads and writes
  double flops_f32 = 0, flops_tf32 = 0, flops_f16 = 0, flops_f64 = 0;  ///< FLOPs per second of large products
};

}  // namespace metaprof
