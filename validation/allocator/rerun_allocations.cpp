#include "validation/allocator/rerun_allocations.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "meta/allocator/alloc_conf.h"
#include "meta/allocator/caching_allocator.h"
#include "meta/allocator/size_classes.h"

namespace metaprof {

namespace {

using Kind = RecordedEvent::Kind;

// Logs have the lower 40 bits of addresses.
constexpr uint64_t kAddressMask = (uint64_t{1} << 40) - 1;

// Stands for the other streams that use a block whose return is delayed: the log does not say which.
constexpr StreamId kOtherStream = std::numeric_limits<StreamId>::max();

std::string to_text(const SegmentEvent& event) {
  constexpr std::string_view letters = "SRMU";
  std::string text =
      fmt::format("{} {:x} {}", letters[static_cast<size_t>(event.kind)], event.address, event.size);
  if (event.stream != 0) text += fmt::format(" s{}", event.stream);
  if (!event.pool.is_default()) text += fmt::format(" p{}.{}", event.pool.first, event.pool.second);
  return text;
}

bool gives_back(SegmentEvent::Kind kind) {
  return kind == SegmentEvent::Kind::free || kind == SegmentEvent::Kind::unmap;
}

// Logs say stream and pool only where memory comes; what goes back in one go is sorted by address.
std::vector<SegmentEvent> comparable(std::vector<SegmentEvent> events) {
  for (SegmentEvent& event : events) {
    event.address &= kAddressMask;
    if (!gives_back(event.kind)) continue;
    event.stream = 0;
    event.pool = PoolId{};
  }
  for (auto first = events.begin(); first != events.end();) {
    const auto last = std::find_if(first, events.end(), [](const auto& e) { return !gives_back(e.kind); });
    std::sort(first, last, [](const auto& a, const auto& b) { return a.address < b.address; });
    first = last == events.end() ? last : std::next(last);
  }
  return events;
}

// Errors: the settings of the allocator are no such, a number is no statistic of it.
AllocConf settings_of(const RecordingHead& head) {
  for (const RecordedPhase& phase : head.phases)
    if (!phase.unknown.empty())
      fail("{}: phase '{}' has an unknown statistic '{}'", head.path.string(), phase.name, phase.unknown);
  try {
    return parse_alloc_conf(head.alloc_conf);
  } catch (const Error& error) {
    fail("{}: {}", head.path.string(), error.what());
  }
}

// The addresses that the driver of a real device chose: it looks at what else the process has mapped, which no log has.
// Nothing on an emulated one, whose addresses are repeated.
std::shared_ptr<const GivenAddresses> given_addresses(const Recording& recording) {
  if (!recording.head.real_device) return nullptr;
  GivenAddresses given;
  const uint64_t reserved = round_up(recording.head.device_memory.count / 8 * 9, kMinBlockSize);
  for (const RecordedEvent& event : recording.events) {
    if (event.kind != Kind::segment) continue;
    if (event.segment == SegmentEvent::Kind::allocate) given.segments.push_back(event.address);
    const auto holds = [&](uint64_t base) {
      return event.address >= base && event.address - base < reserved;
    };
    if (event.segment == SegmentEvent::Kind::map &&
        std::none_of(given.reserved.begin(), given.reserved.end(), holds))
      given.reserved.push_back(event.address);  // of an expandable segment, where its first pages are
  }
  return std::make_shared<const GivenAddresses>(std::move(given));
}

class Rerun {
 public:
  Rerun(const Recording& recording, RerunResult& result)
      : recording_(recording),
        result_(result),
        allocator_({.conf = settings_of(recording.head),
                    .device = {.capacity = static_cast<uint64_t>(recording.head.device_memory.count),
                               .given = given_addresses(recording)},
                    .order = framework_of(recording.head).free_block_order,
                    .events_complete_at_once = false,
                    .record_segment_events = true}),
        blocks_(recording.allocations, kNoBlock) {}

  void run() {
    const std::vector<RecordedEvent>& events = recording_.events;
    for (size_t i = 0; i < events.size() && !stopped();) {
      size_t end = i;  // of the lines about memory coming and going that lead to events[end]
      while (end < events.size() && is_consequence(events[end].kind)) ++end;
      const Group group(events.data() + i, events.data() + end);
      if (end == events.size()) {
        release_cache(group);
        break;
      }
      const bool ends_phase = end + 1 == events.size() || events[end + 1].kind == Kind::phase;
      if (ends_phase && events[end].kind == Kind::give_back) {
        release_cache(group);
        free_at_end_of_phase(events[end]);
      } else {
        step(group, events[end]);
      }
      i = end + 1;
    }
    if (!stopped()) end_phase();
  }

 private:
  using Group = std::span<const RecordedEvent>;

  static bool releases(const RecordedEvent& event) {
    return event.kind == Kind::segment && gives_back(event.segment);
  }
  static bool is_consequence(Kind kind) { return kind == Kind::segment || kind == Kind::completed; }

  bool stopped() const { return differences_ >= kMostDifferences; }

  void differ(size_t line, std::string what, std::string expected, std::string got) {
    if (stopped()) return;
    ++differences_;
    result_.differences.push_back(
        {recording_.log_path, line, std::move(what), std::move(expected), std::move(got)});
  }

  void step(Group group, const RecordedEvent& event) {
    if (event.kind == Kind::request || event.kind == Kind::out_of_memory) {
      request(group, event);
    } else {
      release_cache(group);
      if (event.kind == Kind::give_back) free(event);
      if (event.kind == Kind::phase) begin_phase(event);
    }
    check_phase(event);
  }

  // ---- requests

  // Where a request is served. The line of a failed request does not say it.
  struct Place {
    StreamId stream = 0;
    uint32_t pool = 0;  // index in Recording::pools
    auto operator<=>(const Place&) const = default;
  };
  // How the lines before a request can have come about.
  enum class Way {
    by_request,           // the request itself made memory come and go
    by_program,           // empty_cache() and then the request
    waiting_until_retry,  // returned blocks became free while the request waited for them
  };
  struct State {
    CachingAllocator allocator;
    uint32_t open_pool;
  };

  // Takes the first way that gives all the recorded lines; if there is none, the first.
  void request(Group group, const RecordedEvent& event) {
    const bool failed = event.kind == Kind::out_of_memory;
    const bool released = std::any_of(group.begin(), group.end(), releases);
    if (!failed) {
      last_place_ = {event.stream, event.pool};
      seen_places_.insert(last_place_);
    }
    if (!failed && !released) {
      attempt(group, event, last_place_, Way::by_request);
    } else {
      choose_way(group, event, failed ? places() : std::vector<Place>{last_place_});
    }
    waits_unseen_ = kNoBlock;
    compare(group, event.line);
    finish_request(event);
  }

  void choose_way(Group group, const RecordedEvent& event, const std::vector<Place>& places) {
    const State before{allocator_, open_pool_};
    const auto reset = [&] {
      allocator_ = before.allocator;
      open_pool_ = before.open_pool;
    };
    for (const Place& place : places) {
      for (const Way way : {Way::by_request, Way::by_program, Way::waiting_until_retry}) {
        reset();
        attempt(group, event, place, way);
        if (fits(group, event)) return;
      }
    }
    reset();
    attempt(group, event, places.front(), Way::by_request);
  }

  void attempt(Group group, const RecordedEvent& event, Place place, Way way) {
    if (waits_unseen_ != kNoBlock) allocator_.finish_waiting(waits_unseen_);
    select_pool(place.pool);
    if (way != Way::waiting_until_retry) complete(group);
    give_up_pools(group);
    if (way == Way::by_program) empty_cache(group);
    block_ = allocator_.allocate(static_cast<std::int64_t>(event.bytes), place.stream).value_or(kNoBlock);
    produced_ = allocator_.take_segment_events();
  }

  bool fits(Group group, const RecordedEvent& event) const {
    const bool failed = event.kind == Kind::out_of_memory;
    if (failed != (block_ == kNoBlock)) return false;
    if (!failed && address(block_) != event.address) return false;
    const bool still_waiting = std::any_of(group.begin(), group.end(), [&](const RecordedEvent& e) {
      const BlockNumber block = e.kind == Kind::completed ? blocks_[e.allocation] : kNoBlock;
      return block != kNoBlock && allocator_.is_waiting(block);
    });
    return !still_waiting && comparable(produced_) == recorded(group);
  }

  // Of the last request first, then all others that were seen.
  std::vector<Place> places() const {
    std::vector<Place> all{last_place_};
    for (const Place& place : seen_places_) {
      if (place != last_place_) all.push_back(place);
    }
    return all;
  }

  void finish_request(const RecordedEvent& event) {
    if (event.kind == Kind::out_of_memory) {
      if (block_ == kNoBlock) return;
      differ(event.line, "out of memory", fmt::format("! oom {}", event.bytes),
             fmt::format("+ {:x} {}", address(block_), event.bytes));
      allocator_.free(block_);
      return;
    }
    ++result_.requests;
    blocks_[event.allocation] = block_;
    if (block_ == kNoBlock) {
      differ(event.line, "out of memory", fmt::format("+ {:x} {}", event.address, event.bytes),
             fmt::format("! oom {}", allocator_.failed_request().requested));
    } else if (address(block_) != event.address) {
      differ(event.line, "address", fmt::format("+ {:x} {}", event.address, event.bytes),
             fmt::format("+ {:x} {}", address(block_), event.bytes));
    }
  }

  uint64_t address(BlockNumber block) const { return allocator_.block(block).address & kAddressMask; }

  // A request from a private pool means that the pool is begun, one from the default pool that it has ended.
  void select_pool(uint32_t selected) {
    if (selected == open_pool_) return;
    close_pool();
    if (selected == 0) return;
    const PoolId pool = recording_.pools[selected];
    if (!allocator_.has_pool(pool)) allocator_.create_pool(pool);
    if (allocator_.pool_uses(pool) == 0) return;  // given up too early: requests then differ
    allocator_.begin_pool(pool);
    open_pool_ = selected;
  }

  void close_pool() {
    if (open_pool_ == 0) return;
    const PoolId pool = recording_.pools[std::exchange(open_pool_, 0)];
    allocator_.end_pool(pool);
    allocator_.release_pool(pool);
  }

  // ---- frees

  void free(const RecordedEvent& event) {
    const BlockNumber block = blocks_[event.allocation];
    if (block == kNoBlock) return;  // was never given: reported there
    if (event.delayed) {
      allocator_.record_stream(block, kOtherStream);
    } else {
      blocks_[event.allocation] = kNoBlock;
    }
    allocator_.free(block);
  }

  // A log does not say that a block became free if that happened right after its return, at the next request.
  // At the end of a phase its statistics tell whether the block still waited.
  void free_at_end_of_phase(const RecordedEvent& event) {
    const BlockNumber block = blocks_[event.allocation];
    const CachingAllocator before = allocator_;
    free(event);
    check_phase(event);
    if (phase_ == nullptr || block == kNoBlock || event.delayed || matches()) return;
    const CachingAllocator at_once = std::exchange(allocator_, before);
    allocator_.record_stream(block, kOtherStream);
    allocator_.free(block);
    if (matches()) {
      matched_ = true;
      waits_unseen_ = block;
    } else {
      allocator_ = at_once;
    }
  }

  void complete(Group group) {
    for (const RecordedEvent& event : group) {
      if (event.kind != Kind::completed) continue;
      const BlockNumber block = blocks_[event.allocation];
      if (block != kNoBlock) allocator_.finish_waiting(block);
    }
  }

  // Lines that no request follows: the program released the cache.
  void release_cache(Group group) {
    if (group.empty()) return;
    complete(group);
    give_up_pools(group);
    empty_cache(group);
    produced_ = allocator_.take_segment_events();
    compare(group, group.back().line);
  }

  void empty_cache(Group group) {
    bool default_pool = false;
    std::vector<PoolId> pools;
    for (const RecordedEvent& event : group) {
      if (!releases(event)) continue;
      const std::optional<PoolId> pool = pool_of_segment(event.address);
      if (!pool || pool->is_default()) {
        default_pool = true;
      } else if (std::find(pools.begin(), pools.end(), *pool) == pools.end()) {
        pools.push_back(*pool);
      }
    }
    if (default_pool) return allocator_.empty_cache();
    for (const PoolId pool : pools) allocator_.empty_cache(pool);
  }

  // Memory of a private pool goes back only when nobody uses the pool any more.
  void give_up_pools(Group group) {
    for (const RecordedEvent& event : group) {
      if (!releases(event)) continue;
      const std::optional<PoolId> pool = pool_of_segment(event.address);
      if (!pool || pool->is_default()) continue;
      if (*pool == recording_.pools[open_pool_]) close_pool();
      while (allocator_.pool_uses(*pool) > 0) allocator_.release_pool(*pool);
    }
  }

  std::optional<PoolId> pool_of_segment(uint64_t address) const {
    if (recording_.pools.size() == 1) return PoolId{};
    for (const SegmentSnapshot& segment : allocator_.snapshot()) {
      const uint64_t begin = segment.address & kAddressMask;
      if (address >= begin && address < begin + segment.size) return segment.pool;
    }
    return std::nullopt;
  }

  // ---- segments

  std::vector<SegmentEvent> recorded(Group group) const {
    std::vector<SegmentEvent> events;
    for (const RecordedEvent& event : group) {
      if (event.kind != Kind::segment) continue;
      events.push_back(
          {event.segment, event.address, event.bytes, event.stream, recording_.pools[event.pool]});
    }
    return comparable(std::move(events));
  }

  void compare(Group group, size_t line) {
    if (group.empty() && produced_.empty()) return;
    const std::vector<SegmentEvent> expected = recorded(group);
    const std::vector<SegmentEvent> got = comparable(produced_);
    const auto [e, g] = std::mismatch(expected.begin(), expected.end(), got.begin(), got.end());
    if (e == expected.end() && g == got.end()) return;
    for (const RecordedEvent& event : group) {
      if (e != expected.end() && event.kind == Kind::segment && event.address == e->address)
        line = event.line;
    }
    differ(line, "segment", e == expected.end() ? "nothing" : to_text(*e),
           g == got.end() ? "nothing" : to_text(*g));
  }

  // ---- phases

  void begin_phase(const RecordedEvent& event) {
    end_phase();
    phase_ = &recording_.head.phases[event.bytes];
    matched_ = false;
    allocator_.reset_peaks();
  }

  bool matches() const {
    return std::all_of(phase_->numbers.begin(), phase_->numbers.end(), [&](const auto& number) {
      return number.first->of(allocator_.statistics()) == static_cast<uint64_t>(number.second);
    });
  }

  void check_phase(const RecordedEvent& event) {
    if (phase_ == nullptr) return;
    last_line_ = event.line;
    if (!matched_) matched_ = matches();
  }

  // What the program does between two phases stands in the log before the next one begins.
  void end_phase() {
    if (phase_ == nullptr) return;
    ++result_.phases;
    const bool last = phase_ == &recording_.head.phases.back();
    if (!matches()) {
      if (matched_ && !last) {
        ++result_.phases_ended_early;
      } else {
        compare_numbers();
      }
    }
    const std::string message = phase_->out_of_memory ? allocator_.failed_request().message() : "";
    if (phase_->out_of_memory && *phase_->out_of_memory != message) {
      differ(last_line_, fmt::format("message of phase '{}'", phase_->name), *phase_->out_of_memory, message);
    }
  }

  void compare_numbers() {
    for (const auto& [field, expected] : phase_->numbers) {
      const uint64_t got = field->of(allocator_.statistics());
      if (got == static_cast<uint64_t>(expected)) continue;
      differ(last_line_, fmt::format("{} of phase '{}'", field->name(), phase_->name),
             std::to_string(expected), std::to_string(got));
    }
  }

  const Recording& recording_;
  RerunResult& result_;
  CachingAllocator allocator_;
  std::vector<BlockNumber> blocks_;  // by allocation
  uint32_t open_pool_ = 0;           // index in Recording::pools
  Place last_place_;                 // of the last request that was served
  std::set<Place> seen_places_;
  BlockNumber block_ = kNoBlock;         // of the last request
  BlockNumber waits_unseen_ = kNoBlock;  // became free at a request without a line that says so
  std::vector<SegmentEvent> produced_;   // by the last request or release
  const RecordedPhase* phase_ = nullptr;
  bool matched_ = false;  // at some event of the phase all its statistics were the recorded ones
  size_t last_line_ = 0;
  size_t differences_ = 0;
};

}  // namespace

void rerun_allocations(const Recording& recording, RerunResult& result) {
  const size_t before = result.differences.size();
  Rerun(recording, result).run();
  ++result.recordings;
  if (result.differences.size() == before) ++result.equal;
}

RerunResult rerun_allocations(const std::vector<std::string>& logs) {
  RerunResult result;
  for (const std::string& log : logs) rerun_allocations(read_recording(log), result);
  return result;
}

}  // namespace metaprof
