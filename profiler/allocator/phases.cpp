#include "profiler/allocator/phases.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace metaprof {
namespace {

class Replay {
 public:
  Replay(const Requests& requests, DeviceAllocator& allocator, const BeforeRequest& before = {})
      : requests_(requests), allocator_(allocator), before_(before), blocks_(requests.slots, kNone) {}

  // `explain` completes what is said of a request that fails; it gives the storages that its error lets go.
  template <class Explain>
  Phases run(const Explain& explain) {
    for (const Request& request : requests_.list) {
      if (before_) before_(request);
      if (feed(request)) continue;
      const AllocatorNumbers now = allocator_.numbers();
      OutOfMemory& failed = phases_.out_of_memory.emplace();
      failed.event = request.event;
      failed.part = part_;
      failed.requested = {request.bytes};
      failed.allocated = {now.allocated_bytes.current};
      failed.reserved = {now.reserved_bytes.current};
      for (const uint32_t storage : explain(failed)) release(storage);
      break;
    }
    end_part();
    return std::move(phases_);
  }

 private:
  static constexpr BlockNumber kNone = ~BlockNumber{0};

  // False: out of memory.
  bool feed(const Request& request) {
    switch (request.kind) {
      case Request::Kind::allocate: return allocate(request);
      case Request::Kind::free: release(request.slot); break;
      case Request::Kind::record_stream:
        if (blocks_[request.slot] != kNone) allocator_.record_stream(blocks_[request.slot], request.stream);
        break;
      case Request::Kind::empty_cache: allocator_.empty_cache(); break;
      case Request::Kind::begin_part:
        end_part();
        part_ = requests_.parts[request.slot];
        open_ = true;
        allocator_.reset_peaks();
        break;
      case Request::Kind::end_part: end_part(); break;
    }
    return true;
  }

  bool allocate(const Request& request) {
    const auto block = allocator_.allocate(request.bytes, request.stream);
    if (block) blocks_[request.slot] = *block;
    return block.has_value();
  }

  void release(uint32_t slot) {
    if (blocks_[slot] != kNone) allocator_.free(std::exchange(blocks_[slot], kNone));
  }

  void end_part() {
    if (!std::exchange(open_, false)) return;
    const PhaseRow& row = phases_.rows.emplace_back(PhaseRow{part_, allocator_.numbers()});
    for (const auto number : kAllocatorNumbers) {
      AllocatorNumber& overall = phases_.peak.*number;
      overall.current = (row.numbers.*number).current;
      overall.peak = std::max(overall.peak, (row.numbers.*number).peak);
    }
  }

  const Requests& requests_;
  DeviceAllocator& allocator_;
  BeforeRequest before_;
  StepPart part_;
  bool open_ = false;                // a part has begun and has no row yet
  std::vector<BlockNumber> blocks_;  // by slot
  Phases phases_;
};

// A failed request's place in the program, and what its error lets go.
class Failure {
 public:
  Failure(const Trace& trace, size_t failed) : trace_(trace), failed_(failed), cursor_(trace) {
    for (size_t i = 0; i <= failed; ++i) {
      const Event& event = trace.events[i];
      if (event.kind == Event::Kind::phase && (!cursor_.begun() || cursor_.begins_part(event)))
        part_begin_ = i;
      follow_calls(event, i);
      cursor_.pass(event);
    }
  }

  std::string_view op() const { return cursor_.op(); }
  std::string_view module() const { return cursor_.module(); }

  // The error goes through the operators at work, whose temporaries and results it releases; in a backward
  // also through the engine, with the gradients that wait there. What Python names stays: the error's
  // traceback keeps its frames; what the statement at work has made goes with it. Recorded: gpt2.mem4900 (backward),
  // vit-b-16.mem2500 (forward), gpt2.mem1000 (a statement, 2.15).
  std::vector<uint32_t> released(const WaitingResults& waiting) {
    let_go(begin_of_work(), failed_);
    if (waiting && depth_ > 0 && cursor_.part().phase == Phase::forward) let_go_statement(waiting);
    return std::move(released_);
  }

 private:
  void follow_calls(const Event& event, size_t index) {
    if (event.kind == Event::Kind::call || event.kind == Event::Kind::node) {
      if (depth_++ == 0) outermost_ = index;
    } else if (event.kind == Event::Kind::end) {
      --depth_;
    }
  }

  size_t begin_of_work() const {
    if (cursor_.part().phase != Phase::backward) return depth_ > 0 ? outermost_ : failed_;
    size_t begin = part_begin_;
    while (begin < failed_ && trace_.events[begin].kind != Event::Kind::node) ++begin;  // the root's gradient
    return begin;
  }

  // The results of those nodes that the failed one's statement holds.
  void let_go_statement(const WaitingResults& waiting) {
    std::map<size_t, std::pair<size_t, size_t>> events_of;  // node → where its events begin and end
    size_t last = 0;
    for (size_t i = part_begin_; i <= failed_; ++i) {
      const Event& event = trace_.events[i];
      if (event.kind != Event::Kind::call || event.value == 0) continue;
      if (last != 0) events_of[last - 1].second = i;
      last = static_cast<size_t>(event.value);
      events_of[last - 1] = {i, failed_};
    }
    if (last == 0) return;
    for (const size_t node : waiting(last - 1))
      if (const auto found = events_of.find(node); found != events_of.end())
        let_go(found->second.first, found->second.second);
  }

  // What was allocated between two events.
  void let_go(size_t begin, size_t end) {
    std::unordered_set<uint32_t> kept;  // gradients of parameters, workspaces of libraries, autocast's cache
    const auto stays = [](const Event& event) {
      const auto category = static_cast<Category>(event.detail);
      return category == Category::gradient || category == Category::workspace ||
             category == Category::cached_copy;
    };
    for (size_t i = begin; i < end; ++i) {
      const Event& event = trace_.events[i];
      if ((event.kind == Event::Kind::alloc || event.kind == Event::Kind::category) && stays(event))
        kept.insert(event.id);
    }
    for (size_t i = begin; i < end; ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == Event::Kind::alloc && !kept.contains(event.id)) released_.push_back(event.id);
    }
  }

  const Trace& trace_;
  const size_t failed_;  // index of the request
  Cursor cursor_;
  size_t part_begin_ = 0;  // index of the event that began the part
  size_t outermost_ = 0;   // … and the outermost operator or node at work
  int depth_ = 0;          // of operators and nodes at work
  std::vector<uint32_t> released_;
};

}  // namespace

Phases replay(const Trace& trace, Device device, DeviceAllocator& allocator, const WaitingResults& waiting,
              int repeated) {
  Requests requests = requests_of(trace, trace.events, device);
  repeat_last_step(requests, repeated);
  return Replay(requests, allocator).run([&](OutOfMemory& failed) {
    Failure failure(trace, failed.event);
    failed.op = failure.op();
    failed.module = failure.module();
    return failure.released(waiting);  // a slot is the number of its storage
  });
}

Phases replay(const Requests& requests, DeviceAllocator& allocator, const BeforeRequest& before) {
  return Replay(requests, allocator, before).run([](OutOfMemory&) { return std::vector<uint32_t>(); });
}

}  // namespace metaprof
