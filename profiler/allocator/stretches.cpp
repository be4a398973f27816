#include "profiler/allocator/stretches.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"

namespace metaprof {
namespace {

using Kind = Request::Kind;
constexpr BlockNumber kNone = ~BlockNumber{0};
constexpr size_t kNever = std::numeric_limits<size_t>::max();

// A step's place in the list: where it begins, each further micro-batch, and its end.
std::vector<size_t> cuts(const Requests& requests, uint32_t step) {
  std::vector<size_t> places;
  for (size_t i = 0; i < requests.list.size(); ++i) {
    if (requests.list[i].kind != Kind::begin_part) continue;
    const StepPart& part = requests.parts[requests.list[i].slot];
    if (part.phase == Phase::setup) continue;
    if (part.step > step) {
      places.push_back(i);
      return places;
    }
    if (part.step == step && (places.empty() || (part.phase == Phase::forward && part.micro > 0)))
      places.push_back(i);
  }
  places.push_back(requests.list.size());
  return places;
}

class Cutting {
 public:
  Cutting(const Requests& requests, uint32_t step, std::span<const uint32_t> inputs)
      : requests_(requests),
        cuts_(cuts(requests, step)),
        born_(requests.slots, kNever),
        freed_(requests.slots, kNever) {
    for (size_t i = 0; i < requests.list.size(); ++i) {
      const Request& request = requests.list[i];
      if (request.kind == Kind::allocate) {
        born_[request.slot] = i;
        births_.push_back(request.slot);
      } else if (request.kind == Kind::free) {
        freed_[request.slot] = i;
      }
    }
    for (const uint32_t slot : inputs) {
      if (slot >= born_.size() || born_[slot] == kNever) continue;
      batch_.push_back(requests.list[born_[slot]]);
      freed_[slot] = kNever;
    }
    // What the last step leaves is replaced in the one that follows.
    if (cuts_.back() == requests.list.size())
      for (const uint32_t slot : births_)
        if (born_[slot] >= cuts_.front() && freed_[slot] == kNever) freed_[slot] = requests.list.size();
  }

  std::vector<Stretch> all() const {
    std::vector<Stretch> result;
    for (size_t i = 0; i + 1 < cuts_.size(); ++i) result.push_back(cut(cuts_[i], cuts_[i + 1]));
    return result;
  }

 private:
  bool goes_later(uint32_t slot, size_t place) const {
    return born_[slot] < place && freed_[slot] >= place && freed_[slot] != kNever;
  }

  Stretch cut(size_t begin, size_t end) const {
    Stretch stretch{.batch = batch_};
    std::vector<uint32_t> local(requests_.slots, kNone);
    for (const uint32_t slot : births_)
      if (goes_later(slot, begin)) local[slot] = stretch.found++;
    stretch.slots = stretch.found;
    for (size_t i = begin; i < end; ++i) {
      Request request = requests_.list[i];
      if (request.kind == Kind::begin_part) {
        request.slot = static_cast<uint32_t>(requests_.parts[request.slot].phase);
      } else if (request.kind == Kind::allocate) {
        request.slot = local[request.slot] = stretch.slots++;
      } else if (request.kind == Kind::free || request.kind == Kind::record_stream) {
        if (local[request.slot] == kNone) continue;  // stays for the whole run
        request.slot = local[request.slot];
      }
      stretch.list.push_back(request);
    }
    for (const uint32_t slot : births_)
      if (goes_later(slot, end)) stretch.left.push_back(local[slot]);
    return stretch;
  }

  const Requests& requests_;
  const std::vector<size_t> cuts_;
  std::vector<size_t> born_, freed_;  // by slot: index of the request
  std::vector<uint32_t> births_;      // slots, in the order in which they are allocated
  std::vector<Request> batch_;
};

}  // namespace

std::vector<Stretch> stretches(const Requests& requests, uint32_t step, std::span<const uint32_t> inputs) {
  return Cutting(requests, step, inputs).all();
}

bool StretchReplay::set_up(const Requests& requests, std::span<const uint32_t> inputs) {
  std::vector<BlockNumber> blocks(requests.slots, kNone);
  for (const Request& request : requests.list) {
    if (request.kind == Kind::begin_part) {
      if (requests.parts[request.slot].phase != Phase::setup) break;
    } else if (!feed(request, blocks)) {
      return false;
    }
  }
  for (const uint32_t slot : inputs)
    if (slot < blocks.size() && blocks[slot] != kNone) batch_.push_back(blocks[slot]);
  return true;
}

std::optional<StretchReplay::Failure> StretchReplay::play(const Stretch& stretch, bool new_batch) {
  phase_ = Phase::setup;
  if (new_batch && !replace_batch(stretch)) return failure(failed_);
  if (carried_.size() != stretch.found)
    fail("steps of inputs of different lengths leave different numbers of tensors: {} and {}",
         carried_.size(), stretch.found);
  std::vector<BlockNumber> blocks(stretch.slots, kNone);
  std::ranges::copy(carried_, blocks.begin());
  for (const Request& request : stretch.list)
    if (!feed(request, blocks)) return failure(request);
  carried_.clear();
  for (const uint32_t slot : stretch.left) carried_.push_back(blocks[slot]);
  return std::nullopt;
}

bool StretchReplay::replace_batch(const Stretch& stretch) {
  std::vector<BlockNumber> made;
  for (const Request& request : stretch.batch) {
    const auto block = allocator_.allocate(request.bytes, request.stream);
    if (!block) {
      failed_ = request;
      return false;
    }
    made.push_back(*block);
  }
  for (const BlockNumber block : std::exchange(batch_, std::move(made))) allocator_.free(block);
  return true;
}

bool StretchReplay::feed(const Request& request, std::vector<BlockNumber>& blocks) {
  switch (request.kind) {
    case Kind::allocate: {
      const auto block = allocator_.allocate(request.bytes, request.stream);
      if (block) blocks[request.slot] = *block;
      return block.has_value();
    }
    case Kind::free:
      if (blocks[request.slot] != kNone) allocator_.free(std::exchange(blocks[request.slot], kNone));
      break;
    case Kind::record_stream:
      if (blocks[request.slot] != kNone) allocator_.record_stream(blocks[request.slot], request.stream);
      break;
    case Kind::empty_cache: allocator_.empty_cache(); break;
    case Kind::begin_part: phase_ = static_cast<Phase>(request.slot); break;
    case Kind::end_part: break;
  }
  return true;
}

StretchReplay::Failure StretchReplay::failure(const Request& request) const {
  const AllocatorNumbers now = allocator_.numbers();
  return {.phase = phase_,
          .requested = {request.bytes},
          .allocated = {now.allocated_bytes.current},
          .reserved = {now.reserved_bytes.current}};
}

}  // namespace metaprof
