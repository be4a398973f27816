#include "profiler/phases.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

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
  Replay(const Trace& trace, DeviceType device, DeviceAllocator& allocator)
      : trace_(trace), device_(device), allocator_(allocator), cursor_(trace) {}

  Phases run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == Event::Kind::phase && (!cursor_.begun() || cursor_.begins_part(event))) begin_part();
      if (event.kind == Event::Kind::pause) end_part();
      cursor_.pass(event);
      if (!feed(event)) {
        phases_.out_of_memory = {.event = i,
                                 .part = cursor_.part(),
                                 .op = std::string(cursor_.op()),
                                 .module = std::string(cursor_.module()),
                                 .requested = {event.value}};
        break;
      }
    }
    end_part();
    return std::move(phases_);
  }

 private:
  void begin_part() {
    end_part();
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

  // False: out of memory.
  bool feed(const Event& event) {
    if (event.kind == Event::Kind::alloc) return !on_device(event.id) || allocate(event);
    if (event.kind == Event::Kind::resize) return !on_device(event.id) || resize(event);
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

  bool on_device(uint32_t storage) const { return trace_.storages[storage].device.type == device_; }

  bool allocate(const Event& event) {
    if (event.value == 0) return true;
    const auto block = allocator_.allocate(event.value, event.stream);
    if (block) blocks_[event.id] = *block;
    return block.has_value();
  }

  // The framework allocates the new memory, copies, and lets the old go.
  bool resize(const Event& event) {
    const auto old = blocks_.extract(event.id);
    if (!allocate(event)) return false;
    if (old) allocator_.free(old.mapped());
    return true;
  }

  const Trace& trace_;
  const DeviceType device_;
  DeviceAllocator& allocator_;
  Cursor cursor_;
  bool open_ = false;                                 // a part has begun and has no row yet
  std::unordered_map<uint32_t, BlockNumber> blocks_;  // by storage
  Phases phases_;
};

}  // namespace

bool fits(const Phases& phases, Bytes device_memory) {
  return !phases.out_of_memory && phases.peak.reserved_bytes.peak <= device_memory.count;
}

Phases replay(const Trace& trace, DeviceType device, DeviceAllocator& allocator) {
  return Replay(trace, device, allocator).run();
}

}  // namespace metaprof
