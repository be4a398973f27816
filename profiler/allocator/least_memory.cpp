#include "profiler/allocator/least_memory.h"

#include "core/rounding.h"

namespace metaprof {
namespace {

constexpr int64_t kSmallestSegment = int64_t{2} << 20;  // kSmallBuffer of CUDACachingAllocator

}  // namespace

Bytes least_memory(Bytes alive, Bytes taken, const std::function<bool(Bytes memory)>& runs_out) {
  int64_t fails = align_up(alive.count, kSmallestSegment) - kSmallestSegment, runs = taken.count;
  while (runs - fails > kSmallestSegment) {
    const int64_t tried = fails + align_up((runs - fails) / 2, kSmallestSegment);
    if (tried >= runs) break;
    (runs_out(Bytes{tried}) ? fails : runs) = tried;
  }
  return {runs};
}

}  // namespace metaprof
