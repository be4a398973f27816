#include "estimate/least_memory.h"

#include "estimate/replay.h"
#include "profiler/allocator/least_memory.h"
#include "profiler/allocator/requests.h"

namespace metaprof {
std::optional<Bytes> least_memory(const Estimate& estimate) {
  const Phases& phases = estimate.report.memory.phases;
  if (estimate.platform.hardware.is_cpu()) return std::nullopt;
  if (phases.out_of_memory && !estimate.report.needed_memory) return std::nullopt;
  const Bytes taken = estimate.report.needed_memory.value_or(Bytes{phases.peak.reserved_bytes.peak});
  const Bytes alive = estimate.report.needed_allocated.value_or(Bytes{phases.peak.allocated_bytes.peak});
  Requests requests = requests_of(estimate.trace, estimate.trace.events, estimate.platform.device());
  repeat_last_step(requests, estimate.repeated);
  return least_memory(alive, taken, [&](Bytes memory) {
    return replay_requests(requests, estimate.options, estimate.platform, memory).out_of_memory.has_value();
  });
}

}  // namespace metaprof
