#pragma once
// What a step takes at least, whatever is computed again or waits on the host.

#include <string>

#include "meta/trace/trace.h"

namespace metaprof {

struct PeakBound {
  Bytes bytes;
  std::string op, module;  ///< of the call that needs it
};

/// The most that one call of a plain step needs: what it reads and writes, beside what is alive then and outlives the
/// part of the step in which it was made (parameters, buffers, inputs, the optimizer's states, gradients). Every plan
/// makes each of these calls, on tensors of these sizes, at a time at which all of that is alive. Bytes as asked for,
/// before the allocator rounds them.
PeakBound peak_bound(const Trace& trace);

}  // namespace metaprof
