#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "validation/recordings/step_log.h"
#include "validation/results/rerun_result.h"

namespace metaprof {

/// Differences of one recording after which the comparison ends: one is enough to make all that follows differ.
inline constexpr size_t kMostDifferences = 20;

/// Drives the caching allocator with a recording's requests and frees on a device with the recorded memory and
/// compares the address of every block, every segment that comes and goes and every statistic of every phase.
/// The recording of a real device decides where segments lie; everything else is compared as on an emulated one.
///
/// What the log does not say is taken from what follows in it: a returned block waits for other streams iff a
/// `c` line says later that it became free; memory that goes back to the device although no request needs it
/// was released by the program (torch.cuda.empty_cache); a private pool whose memory goes back is no longer
/// used; a failed request was made where the recorded lines follow from it. What the program does between two
/// phases stands in the log before the next one begins, so that a phase (but not the last) may end at an
/// earlier event, where all its statistics are the recorded ones. Segments that go back in one go are compared
/// as a set: their order follows the handles of streams, which the log does not have.
void rerun_allocations(const Recording& recording, RerunResult& result);

/// Reads and repeats each log. Throws Error for a recording that cannot be read.
RerunResult rerun_allocations(const std::vector<std::string>& logs);

}  // namespace metaprof
