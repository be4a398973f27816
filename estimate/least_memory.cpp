#include "estimate/least_memory.h"

#include "core/rounding.h"
#include "estimate/replay.h"
#include "profiler/allocator/requests.h"

namespace metaprof {
namespace {

constexpr int64_t kSmallestSegment = int64_t{2} << 20;  // kSmallBuffer of CUDACachingAllocator

// Between `fails`, in which memory runs out, and `runs`, in which it does not: the least that runs.
int64_t search(const Requests& requests, const Estimate& estimate, int64_t fails, int64_t runs) {
  while (runs - fails > kSmallestSegment) {
    const int64_t tried = fails + align_up((runs - fails) / 2, kSmallestSegment);
    if (tried >= runs) break;
    const Phases phases = replay_requests(requests, estimate.options, estimate.platform, Bytes{tried});
    (phases.out_of_memory ? fails : runs) = tried;
  }
  return runs;
}

}  // namespace

std::optional<Bytes> least_memory(const Estimate& estimate) {
  const Phases& phases = estimate.report.memory.phases;
  if (estimate.platform.hardware.is_cpu()) return std::nullopt;
  if (phases.out_of_memory && !estimate.report.needed_memory) return std::nullopt;
  const Bytes taken = estimate.report.needed_memory.value_or(Bytes{phases.peak.reserved_bytes.peak});
  const Bytes alive = estimate.report.needed_allocated.value_or(Bytes{phases.peak.allocated_bytes.peak});
  Requests requests = requests_of(estimate.trace, estimate.trace.events, estimate.platform.device());
  repeat_last_step(requests, estimate.repeated);
  // Segments are multiples of 2 MiB, and they hold at least what is alive.
  const int64_t none = align_up(alive.count, kSmallestSegment) - kSmallestSegment;
  return Bytes{search(requests, estimate, none, taken.count)};
}

}  // namespace metaprof
