#pragma once
// A program's parameters, buffers and inputs, as tensors on the device: what `module.to(device)` and copying
// the inputs allocate, in that order.

#include "meta/session/session.h"
#include "program/program.h"
#include "step/options.h"

namespace metaprof {

struct PlacedTensors {
  std::vector<Value> inputs;       ///< paired with the program's inputs
  std::vector<Tensor> parameters;  ///< in the order of registration, tied ones once
  std::vector<Tensor> trainable;   ///< those that require grad
};

/// Allocates them and writes the trace's parameter records. Floating parameters, buffers and inputs take the
/// precision of `options` if that is a pure 16-bit one. Tensors that the program has on the host stay there.
PlacedTensors place_tensors(Session& session, const Program& program, const StepOptions& options);

}  // namespace metaprof
