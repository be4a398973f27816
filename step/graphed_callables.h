#pragma once
// A model whose forward and backward are captured apart by torch.cuda.make_graphed_callables (torch/cuda/graphs.py):
// steps on a side stream to warm up, both captures into one pool, and training steps that replay them.

#include "step/step.h"

namespace metaprof {

/// Places in a trace: indices of the first event after them.
struct GraphedCallables {
  struct Capture {
    size_t begin = 0;      ///< what the capture needs beside its pool is allocated from here on
    size_t recording = 0;  ///< requests on its stream come from the pool from here on
    size_t end = 0;
  };
  Trace trace;
  size_t set_up = 0;  ///< the model and its inputs are on the device, the optimizer is made
  Capture forward, backward;
  uint16_t stream = 0;         ///< of the captures
  bool warm_up_joins = false;  ///< the steps to warm up had another, which waits for it: it is captured, too
  size_t captured = 0;         ///< make_graphed_callables has returned
};

/// `warmup`: forwards and backwards before the captures, of the program as it runs plainly; `traced`: as it runs while it
/// is captured; then `options.steps` training steps. Errors: as run_steps.
GraphedCallables run_graphed_callables(const Program& program, const Program& traced,
                                       const Platform& platform, const StepOptions& options, int warmup);

}  // namespace metaprof
