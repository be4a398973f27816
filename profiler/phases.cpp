#include "profiler/phases.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace metaprof {
namespace {

AllocatorNumber AllocatorNumbers::*const kNumbers[] = {&AllocatorNumbers::allocated_bytes,
                                                       &AllocatorNumbers::requested_bytes,
                                                       &AllocatorNumbers::active_bytes,
                                                       &AllocatorNumbers::reserved_bytes,
                                                       &AllocatorNumbers::inactive_split_bytes,
                                                       &AllocatorNumbers::allocation,
                                                       &AllocatorNumbers::segment};

class Replay {
 public:
  Replay(const Trace& trace, Device device, DeviceAllocator& allocator, const WaitingResults& waiting)
      : trace_(trace), device_(device), allocator_(allocator), waiting_(waiting), cursor_(trace) {}

  Phases run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == Event::Kind::phase && (!cursor_.begun() || cursor_.begins_part(event))) begin_part(i);
      if (event.kind == Event::Kind::pause) end_part();
      follow_calls(event, i);
      cursor_.pass(event);
      if (!feed(event)) {
        const AllocatorNumbers now = allocator_.numbers();
        phases_.out_of_memory = {.event = i,
                                 .part = cursor_.part(),
                                 .op = std::string(cursor_.op()),
                                 .module = std::string(cursor_.module()),
                                 .requested = trace_.bytes(event.id),
                                 .allocated = {now.allocated_bytes.current},
                                 .reserved = {now.reserved_bytes.current}};
        unwind(i);
        break;
      }
    }
    end_part();
    return std::move(phases_);
  }

 private:
  void begin_part(size_t index) {
    end_part();
    part_begin_ = index;
    open_ = true;
    allocator_.reset_peaks();
  }

  void end_part() {
    if (!std::exchange(open_, false)) return;
    const PhaseRow& row = phases_.rows.emplace_back(PhaseRow{cursor_.part(), allocator_.numbers()});
    for (const auto number : kNumbers) {
      AllocatorNumber& overall = phases_.peak.*number;
      overall.current = (row.numbers.*number).current;
      overall.peak = std::max(overall.peak, (row.numbers.*number).peak);
    }
  }

  void follow_calls(const Event& event, size_t index) {
    if (event.kind == Event::Kind::call || event.kind == Event::Kind::node) {
      if (depth_++ == 0) outermost_ = index;
    } else if (event.kind == Event::Kind::end) {
      --depth_;
    }
  }

  // False: out of memory.
  bool feed(const Event& event) {
    if (event.kind == Event::Kind::alloc) return !on_device(event.id) || allocate(event);
    const auto found = blocks_.find(event.id);
    if (found == blocks_.end()) return true;
    if (event.kind == Event::Kind::free) {
      allocator_.free(found->second);
      blocks_.erase(found);
    } else if (event.kind == Event::Kind::record_stream) {
      allocator_.record_stream(found->second, event.stream);
    }
    return true;
  }

  // The error goes through the operators at work, whose temporaries and results it releases; in a backward
  // also through the engine, with the gradients that wait there. What Python names stays: the error's
  // traceback keeps its frames; what the statement at work has made goes with it. Recorded: gpt2.mem4900 (backward),
  // vit-b-16.mem2500 (forward), gpt2.mem1000 (a statement, 2.15).
  void unwind(size_t failed) {
    size_t begin = depth_ > 0 ? outermost_ : failed;
    if (cursor_.part().phase == Phase::backward) {
      begin = part_begin_;
      while (begin < failed && trace_.events[begin].kind != Event::Kind::node)
        ++begin;  // the root's gradient
    }
    let_go(begin, failed);
    if (waiting_ && depth_ > 0 && cursor_.part().phase == Phase::forward) let_go_statement(failed);
  }

  // The results of those nodes that the failed one's statement holds.
  void let_go_statement(size_t failed) {
    std::map<size_t, std::pair<size_t, size_t>> events_of;  // node → where its events begin and end
    size_t last = 0;
    for (size_t i = part_begin_; i <= failed; ++i) {
      const Event& event = trace_.events[i];
      if (event.kind != Event::Kind::call || event.value == 0) continue;
      if (last != 0) events_of[last - 1].second = i;
      last = static_cast<size_t>(event.value);
      events_of[last - 1] = {i, failed};
    }
    if (last == 0) return;
    for (const size_t node : waiting_(last - 1))
      if (const auto found = events_of.find(node); found != events_of.end())
        let_go(found->second.first, found->second.second);
  }

  // What was allocated between two events and is still there.
  void let_go(size_t begin, size_t end) {
    std::vector<uint32_t> released;
    std::unordered_set<uint32_t> kept;  // gradients of parameters, workspaces of libraries, autocast's cache
    const auto stays = [](const Event& event) {
      const auto category = static_cast<Category>(event.detail);
      return category == Category::gradient || category == Category::workspace ||
             category == Category::cached_copy;
    };
    for (size_t i = begin; i < end; ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == Event::Kind::alloc) released.push_back(event.id);
      if ((event.kind == Event::Kind::alloc || event.kind == Event::Kind::category) && stays(event))
        kept.insert(event.id);
    }
    for (const uint32_t storage : released) {
      const auto block = kept.contains(storage) ? blocks_.end() : blocks_.find(storage);
      if (block == blocks_.end()) continue;
      allocator_.free(block->second);
      blocks_.erase(block);
    }
  }

  bool on_device(uint32_t storage) const { return trace_.storages[storage].device == device_; }

  bool allocate(const Event& event) {
    const Bytes bytes = trace_.bytes(event.id);
    if (bytes.count == 0) return true;
    const auto block = allocator_.allocate(bytes.count, event.stream);
    if (block) blocks_[event.id] = *block;
    return block.has_value();
  }

  const Trace& trace_;
  const Device device_;
  DeviceAllocator& allocator_;
  const WaitingResults& waiting_;
  Cursor cursor_;
  size_t part_begin_ = 0;                             // index of the event that began the part
  size_t outermost_ = 0;                              // … and the outermost operator or node at work
  int depth_ = 0;                                     // of operators and nodes at work
  bool open_ = false;                                 // a part has begun and has no row yet
  std::unordered_map<uint32_t, BlockNumber> blocks_;  // by storage
  Phases phases_;
};

}  // namespace

Phases replay(const Trace& trace, Device device, DeviceAllocator& allocator, const WaitingResults& waiting) {
  return Replay(trace, device, allocator, waiting).run();
}

}  // namespace metaprof
