#include "step/cudagraphs/whole_network.h"

#include <span>

#include "opcount/counts.h"
#include "step/cudagraphs/trace_blocks.h"

namespace metaprof {
namespace {

// The first graph that makes a pool of its own (aten/src/ATen/cuda/CUDAGraph.cpp, capture_begin).
constexpr PoolId kGraphPool{.first = 1, .second = 0};

class Replay {
 public:
  Replay(const WholeNetworkTrace& run, Device device, CachingAllocator& allocator)
      : run_(run), allocator_(allocator), blocks_(run.trace, device, allocator) {}

  WholeNetworkMemory run() {
    if (feed(0, run_.set_up, "setup", result_.setup) && feed(run_.set_up, run_.warm, "warm", result_.warm) &&
        feed(run_.warm, run_.capture, "captured", result_.captured)) {
      capture();
    }
    result_.replayed = statistics_of(allocator_);
    return std::move(result_);
  }

 private:
  bool feed(size_t begin, size_t end, const char* place, MemoryStatistics& after) {
    const bool fits = blocks_.feed(begin, end);
    after = statistics_of(allocator_);
    if (!fits)
      result_.out_of_memory = {.place = place,
                               .requested = run_.trace.bytes(run_.trace.events[blocks_.failed()].id)};
    return fits;
  }

  // torch.cuda.graph frees as much as it can before it begins.
  void capture() {
    allocator_.empty_cache();
    if (!feed(run_.capture, run_.recording, "captured", result_.captured)) return;
    allocator_.begin_pool(kGraphPool, WholeNetworkTrace::kCaptureStream);
    feed(run_.recording, run_.captured, "captured", result_.captured);
    allocator_.end_pool(kGraphPool);
  }

  const WholeNetworkTrace& run_;
  CachingAllocator& allocator_;
  TraceBlocks blocks_;
  WholeNetworkMemory result_;
};

}  // namespace

WholeNetworkMemory measure(const WholeNetworkTrace& run, Device device, CachingAllocator& allocator) {
  WholeNetworkMemory result = Replay(run, device, allocator).run();
  result.launches = count_kernels(
      run.trace, std::span(run.trace.events).subspan(run.recording, run.captured - run.recording));
  result.copied = run.inputs;
  return result;
}

}  // namespace metaprof
