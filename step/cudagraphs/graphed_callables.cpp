#include "step/cudagraphs/graphed_callables.h"

#include "step/cudagraphs/trace_blocks.h"

namespace metaprof {
namespace {

// torch.cuda.graph_pool_handle()
constexpr PoolId kCallablesPool{.first = 0, .second = 1};

class CallablesReplay {
 public:
  CallablesReplay(const GraphedCallables& run, Device device, CachingAllocator& allocator)
      : run_(run), allocator_(allocator), blocks_(run.trace, device, allocator) {}

  GraphedCallablesMemory run() {
    feed_to(run_.set_up, "setup");
    result_.setup = statistics_of(allocator_);
    capture(run_.forward);
    capture(run_.backward);
    feed_to(run_.captured, "captured");
    result_.captured = statistics_of(allocator_);
    feed_to(run_.trace.events.size(), "replayed");
    result_.replayed = statistics_of(allocator_);
    return std::move(result_);
  }

 private:
  // torch.cuda.graph frees as much as it can before it begins. Gradients of a parameter that is used twice are added
  // on the stream that saw it first, the warm-up's.
  void capture(const GraphedCallables::Capture& places) {
    feed_to(places.begin, "captured");
    if (!result_.out_of_memory) allocator_.empty_cache();
    feed_to(places.recording, "captured");
    allocator_.begin_pool(kCallablesPool,
                          run_.warm_up_joins ? std::nullopt : std::optional<StreamId>(run_.stream));
    feed_to(places.end, "captured");
    allocator_.end_pool(kCallablesPool);
  }

  void feed_to(size_t end, const char* place) {
    if (result_.out_of_memory) return;
    if (!blocks_.feed(fed_, end))
      result_.out_of_memory = {.place = place,
                               .requested = run_.trace.bytes(run_.trace.events[blocks_.failed()].id)};
    fed_ = end;
  }

  const GraphedCallables& run_;
  CachingAllocator& allocator_;
  TraceBlocks blocks_;
  size_t fed_ = 0;
  GraphedCallablesMemory result_;
};

}  // namespace

GraphedCallablesMemory measure(const GraphedCallables& run, Device device, CachingAllocator& allocator) {
  return CallablesReplay(run, device, allocator).run();
}

}  // namespace metaprof
