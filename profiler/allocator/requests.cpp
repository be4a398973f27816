#include "profiler/allocator/requests.h"

#include <algorithm>

#include "core/error.h"
#include "meta/trace/calls.h"

namespace metaprof {
namespace {

class Reading {
 public:
  Reading(const Trace& trace, Device device) : trace_(trace), device_(device), cursor_(trace) {
    requests_.slots = static_cast<uint32_t>(trace.storages.size());
  }

  Requests read(std::span<const Event> events) {
    for (size_t i = 0; i < events.size(); ++i) read(events[i], static_cast<uint32_t>(i));
    return std::move(requests_);
  }

 private:
  using Kind = Request::Kind;

  void read(const Event& event, uint32_t index) {
    switch (event.kind) {
      case Event::Kind::phase:
        if (!cursor_.begun() || cursor_.begins_part(event)) begin_part(event, index);
        break;
      case Event::Kind::pause: requests_.list.push_back({.kind = Kind::end_part, .event = index}); break;
      case Event::Kind::alloc: add(Kind::allocate, event, index, trace_.bytes(event.id).count); break;
      case Event::Kind::free: add(Kind::free, event, index); break;
      case Event::Kind::record_stream: add(Kind::record_stream, event, index); break;
      case Event::Kind::call:
        if (trace_.text(trace_.calls[event.id].op) == kEmptyCache)
          requests_.list.push_back({.kind = Kind::empty_cache, .event = index});
        break;
      default: break;
    }
  }

  void begin_part(const Event& event, uint32_t index) {
    cursor_.pass(event);
    requests_.list.push_back(
        {.kind = Kind::begin_part, .slot = static_cast<uint32_t>(requests_.parts.size()), .event = index});
    requests_.parts.push_back(cursor_.part());
  }

  void add(Kind kind, const Event& event, uint32_t index, int64_t bytes = 0) {
    const StorageRecord& storage = trace_.storages[event.id];
    if (storage.device != device_ || storage.bytes.count == 0) return;
    requests_.list.push_back({.kind = kind,
                              .stream = event.stream,
                              .slot = event.id,
                              .event = index,
                              .size_of_platform = storage.size_of_platform,
                              .bytes = bytes});
  }

  const Trace& trace_;
  const Device device_;
  Cursor cursor_;
  Requests requests_;
};

// The last step's requests, and how they continue when they come once more.
class Repetition {
 public:
  explicit Repetition(Requests& requests) : requests_(requests) {
    const uint32_t step = requests.parts.empty() ? 0 : requests.parts.back().step;
    const auto first = std::ranges::find_if(requests.list, [&](const Request& request) {
      return request.kind == Request::Kind::begin_part && requests.parts[request.slot].step == step &&
             requests.parts[request.slot].phase != Phase::setup;
    });
    step_.assign(first, requests.list.end());
  }

  void add() {
    const std::vector<uint32_t> next = renamed();
    for (Request& request : step_) {
      if (request.kind == Request::Kind::begin_part) {
        StepPart part = requests_.parts[request.slot];
        ++part.step;
        request.slot = static_cast<uint32_t>(requests_.parts.size());
        requests_.parts.push_back(part);
      } else if (request.kind != Request::Kind::end_part && next[request.slot] != kSame) {
        request.slot = next[request.slot];
      }
      requests_.list.push_back(request);
    }
  }

 private:
  static constexpr uint32_t kSame = ~0u;

  // By slot: what a storage of this step is in the next one. Those born here are new ones again; what went here
  // and was not born here is what this step left in its place.
  std::vector<uint32_t> renamed() {
    std::vector<uint32_t> next(requests_.slots, kSame);
    std::vector<bool> freed(requests_.slots);
    std::vector<uint32_t> born, replaced;  // born: in the order of birth
    for (const Request& request : step_) {
      if (request.kind == Request::Kind::allocate) {
        next[request.slot] = requests_.slots++;
        born.push_back(request.slot);
      } else if (request.kind == Request::Kind::free) {
        freed[request.slot] = true;
        if (next[request.slot] == kSame) replaced.push_back(request.slot);
      }
    }
    std::erase_if(born, [&](uint32_t slot) { return freed[slot]; });
    std::ranges::sort(replaced);
    if (born.size() != replaced.size()) fail("a step that leaves more or less than it found is not repeated");
    for (size_t i = 0; i < born.size(); ++i) next[replaced[i]] = born[i];
    return next;
  }

  Requests& requests_;
  std::vector<Request> step_;
};

}  // namespace

Requests requests_of(const Trace& trace, std::span<const Event> events, Device device) {
  return Reading(trace, device).read(events);
}

bool ask_for_the_same(const Requests& one, const Requests& other) {
  if (one.list.size() != other.list.size()) return false;
  std::vector<uint32_t> others(one.slots, ~uint32_t{0});  // by slot of `one`
  for (size_t i = 0; i < one.list.size(); ++i) {
    const Request &a = one.list[i], &b = other.list[i];
    if (a.kind != b.kind || a.stream != b.stream || a.bytes != b.bytes ||
        a.size_of_platform != b.size_of_platform)
      return false;
    switch (a.kind) {
      case Request::Kind::allocate: others[a.slot] = b.slot; break;
      case Request::Kind::free:
      case Request::Kind::record_stream:
        if (others[a.slot] != b.slot) return false;
        break;
      case Request::Kind::begin_part:
        if (one.parts[a.slot] != other.parts[b.slot]) return false;
        break;
      case Request::Kind::empty_cache:
      case Request::Kind::end_part: break;
    }
  }
  return true;
}

void repeat_last_step(Requests& requests, int times) {
  if (times <= 0) return;
  Repetition repetition(requests);
  for (int i = 0; i < times; ++i) repetition.add();
}

}  // namespace metaprof
