#pragma once
// The smallest memory in which an allocator can still serve everything that a run asks for.

#include <functional>

#include "core/units.h"

namespace metaprof {

/// Halves between what is alive at most, in which no run fits, and `taken`, in which it runs, to 2 MiB: segments are multiples
/// of that. Should some size in between fail, it is not looked for. `runs_out`: whether memory runs out with so much.
Bytes least_memory(Bytes alive, Bytes taken, const std::function<bool(Bytes memory)>& runs_out);

}  // namespace metaprof
