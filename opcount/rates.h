#pragma once
// How fast a device is, and what one call costs on it.

#include "meta/trace/trace.h"

namespace metaprof {

/// How fast a device is.
struct Rates {
  double bytes_per_second = 0;  ///< of device memory
  double flops_f64 = 0;         ///< FLOPs per second by the element type of a call's first floating tensor
  double flops_f32 = 0;         ///< … f32 and everything that is not listed
  double flops_f16 = 0;         ///< … f16 and bf16
  double flops_tf32 = 0;        ///< … f32 in TF32; 0: the device has none
  bool tf32_in_cudnn = true;   ///< cuDNN computes f32 in TF32: torch.backends.cudnn.allow_tf32, on by default
  bool tf32_products = false;  ///< and cuBLAS: torch.backends.cuda.matmul.allow_tf32, off by default
  int multiprocessors = 0;     ///< 0: not known
  int sm = 0;                  ///< compute capability, 90 = 9.0
  // What large kernels and products reached on the device; 0: not measured.
  double measured_bytes_per_second = 0;
  double measured_flops_f64 = 0, measured_flops_f32 = 0, measured_flops_f16 = 0, measured_flops_tf32 = 0;
  bool loads_eight_bytes = false;  ///< kernels over 16 bits have half of what those over f32 have on the way

  double flops_per_second(DType) const;
  /// At most, for what this call computes.
  double flops_of(const Trace& trace, const CallRecord& call) const;
  /// The same as measured; 0: not measured.
  double measured_flops_of(const Trace& trace, const CallRecord& call) const;
};

/// What one call costs by itself.
struct CallCost {
  Flops counted, all;
  Bytes moved;
  double seconds = 0;   ///< on an ideal device: the longer of moving its bytes and computing its FLOPs
  double expected = 0;  ///< seconds on a real one (expected_time.h)
};

}  // namespace metaprof
