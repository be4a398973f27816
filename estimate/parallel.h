#pragma once
// Independent pieces of work on all cores.

#include <cstddef>
#include <functional>

namespace metaprof {

/// Told after each piece how many are done; from any thread, one at a time.
using OnProgress = std::function<void(size_t done, size_t all)>;

/// Calls `work` with 0 … count − 1, each once, on as many threads as there are cores; returns when all are
/// done. The first error, by number, is thrown again; pieces that have not begun by then are left out.
void in_parallel(size_t count, const std::function<void(size_t)>& work, const OnProgress& progress = {});

}  // namespace metaprof
