#pragma once
// A training step as the framework documents its capture as one CUDA graph ("whole-network capture",
// torch/cuda/graphs.py): steps on a side stream to warm up, then zero_grad, and the forward, backward and
// optimizer step that are captured. Replays allocate nothing.

#include "step/step.h"

namespace metaprof {

/// Places in a trace: indices of the first event after them.
struct WholeNetworkTrace {
  static constexpr uint16_t kCaptureStream = 2;  ///< whose requests come from the graph's pool

  Trace trace;
  size_t set_up = 0;     ///< the model and its inputs are on the device, the optimizer is made
  size_t warm = 0;       ///< the steps on the side stream are over
  size_t capture = 0;    ///< the capture begins: what it needs beside its pool is allocated from here on
  size_t recording = 0;  ///< requests come from the graph's pool from here on
  size_t captured = 0;   ///< the capture ends
  Bytes inputs;          ///< of the program on the device, which a replay copies its own over
};

/// `warmup`: steps before the capture, of the program as it runs plainly; `traced`: as it runs while it is captured.
/// Errors: as run_steps.
WholeNetworkTrace run_whole_network(const Program& program, const Program& traced, const Platform& platform,
                                    const StepOptions& options, int warmup);

}  // namespace metaprof
