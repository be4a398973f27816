#include "validation/steps/snapshot.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "core/formats/file.h"
#include "core/formats/pickle_reader.h"
#include "meta/allocator/alloc_conf.h"
#include "meta/allocator/size_classes.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostBytes = uintmax_t{1} << 30;
constexpr size_t kMostEntries = size_t{1} << 25;
constexpr int64_t kMostMemory = int64_t{1} << 50, kMostAddress = int64_t{1} << 62;

struct TraceEntry {
  enum class Action : uint8_t { alloc, free_requested, free_completed, segment_made, segment_gone };
  Action action;
  int64_t address = 0, size = 0;
  bool expandable = false;  // a segment that is mapped in pieces
};

// One that is in use, or waits for other streams.
struct Block {
  int64_t address = 0, size = 0;
  bool allocated = false;
};

// The part of a snapshot that is about device 0.
struct Contents {
  std::vector<TraceEntry> trace;
  std::vector<Block> blocks;                           // at the end
  std::vector<std::pair<int64_t, int64_t>> segments;   // at the end: address, bytes; not expandable ones
  int64_t reserved = 0, requested = 0, allocated = 0;  // at the end
  bool default_rules = true;                           // of how blocks are cut
};

int64_t bytes_in(const PickleValue& object, std::string_view key) {
  const PickleValue value = object.at(key);
  const int64_t bytes = value.integer();
  if (bytes < 0 || bytes > kMostMemory) value.reject("a number of bytes");
  return bytes;
}

int64_t address_in(const PickleValue& object, std::string_view key) {
  const PickleValue value = object.at(key);
  const int64_t address = value.integer();
  if (address < 0 || address > kMostAddress) value.reject("an address");
  return address;
}

std::optional<TraceEntry> entry_of(const PickleValue& event) {
  using Action = TraceEntry::Action;
  const std::string_view action = event.at("action").text();
  TraceEntry entry{.action = Action::alloc};
  if (action == "free_requested") {
    entry.action = Action::free_requested;
  } else if (action == "free_completed") {
    entry.action = Action::free_completed;
  } else if (action == "segment_alloc" || action == "segment_map") {
    entry.action = Action::segment_made;
  } else if (action == "segment_free" || action == "segment_unmap") {
    entry.action = Action::segment_gone;
  } else if (action != "alloc") {
    return std::nullopt;  // oom, snapshot and what later versions add
  }
  entry.expandable = action == "segment_map" || action == "segment_unmap";
  entry.address = address_in(event, "addr");
  entry.size = bytes_in(event, "size");
  return entry;
}

void add_block(const PickleValue& element, int64_t address, Contents& contents) {
  Block block{.address = address, .size = bytes_in(element, "size")};
  const std::string_view state = element.at("state").text();
  if (state == "inactive") return;
  block.allocated = state == "active_allocated";
  if (block.allocated) {
    contents.allocated += block.size;
    contents.requested += element.find("requested_size") ? bytes_in(element, "requested_size") : block.size;
  }
  contents.blocks.push_back(block);
}

void add_segment(const PickleValue& segment, Contents& contents) {
  const auto device = segment.find("device");
  if (device && device->integer() != 0) return;
  const int64_t address = address_in(segment, "address"), size = bytes_in(segment, "total_size");
  contents.reserved += size;
  const auto expandable = segment.find("is_expandable");
  if (!expandable || expandable->integer() == 0) contents.segments.emplace_back(address, size);
  const PickleValue blocks = segment.at("blocks");
  int64_t next = address;  // blocks follow each other; early versions do not say where they are
  for (size_t i = 0; i < blocks.size(); ++i) {
    const PickleValue block = blocks.element(i);
    add_block(block, next, contents);
    next += bytes_in(block, "size");
  }
  if (next - address > size || contents.reserved > kMostMemory)
    segment.at("total_size").reject("a larger size");
}

bool has_default_rules(const PickleValue& root) {
  const auto settings = root.find("allocator_settings");
  if (!settings) return true;
  AllocConf conf;
  if (const auto most = settings->find("max_split_size"); most && !most->is_none() && most->integer() > 0)
    conf.max_split_size = static_cast<uint64_t>(most->integer());
  if (const auto divisions = settings->find("roundup_power2_divisions"); divisions && !divisions->is_none())
    for (const PickleValue& value : divisions->values())
      conf.roundup_power2_divisions[0] =
          std::max(conf.roundup_power2_divisions[0], static_cast<uint64_t>(value.integer()));
  return conf.cuts_blocks_by_default_rules();
}

Contents contents_of(const PickleValue& root) {
  Contents contents;
  const PickleValue segments = root.at("segments"), traces = root.at("device_traces");
  for (size_t i = 0; i < segments.size(); ++i) add_segment(segments.element(i), contents);
  if (traces.size() > 0) {
    const PickleValue trace = traces.element(0);
    if (trace.size() > kMostEntries) trace.reject("at most 2^25 events");
    for (size_t i = 0; i < trace.size(); ++i)
      if (const auto entry = entry_of(trace.element(i))) contents.trace.push_back(*entry);
  }
  contents.default_rules = has_default_rules(root);
  return contents;
}

// A number that is known at the end, and its changes: what it was before them, and its peak.
class Running {
 public:
  void add(int64_t change) {
    if (out_of_range()) return;
    now_ += change;
    peak_ = std::max(peak_, now_);
  }
  bool out_of_range() const { return peak_ > kMostMemory || now_ < -kMostMemory; }
  int64_t begin(int64_t end) const { return end - now_; }
  int64_t peak(int64_t end) const { return begin(end) + peak_; }

 private:
  int64_t now_ = 0, peak_ = 0;
};

// Blocks by their addresses. A block ends where its request, rounded up to 512 bytes, ends; or, in a large
// segment, where free memory ends if at most 1 MiB would be left.
class Blocks {
 public:
  explicit Blocks(const Contents& contents) : contents_(contents) {}

  /// Peak of allocated bytes; nothing if a size is not known.
  std::optional<int64_t> allocated_peak() {
    if (!contents_.default_rules || !begin()) return std::nullopt;
    using Action = TraceEntry::Action;
    for (const TraceEntry& entry : contents_.trace) switch (entry.action) {
        case Action::alloc: allocate(entry); break;
        case Action::free_requested: give_back(entry.address); break;
        case Action::free_completed: ends_.erase(entry.address); break;
        case Action::segment_made:
          if (!entry.expandable) segments_[entry.address] = entry.address + entry.size;
          break;
        case Action::segment_gone: segments_.erase(entry.address); break;
      }
    return now_ == contents_.allocated ? std::optional(peak_) : std::nullopt;
  }

 private:
  // What was there before the history. Nothing is known of a block that was made before and is gone.
  bool begin() {
    using Action = TraceEntry::Action;
    std::unordered_set<int64_t> live;
    for (const auto& [address, size] : contents_.segments) segments_[address] = address + size;
    for (size_t i = contents_.trace.size(); i-- > 0;) {
      const TraceEntry& entry = contents_.trace[i];
      if (entry.expandable) continue;
      if (entry.action == Action::segment_made) segments_.erase(entry.address);
      if (entry.action == Action::segment_gone) segments_[entry.address] = entry.address + entry.size;
    }
    for (const TraceEntry& entry : contents_.trace) {
      if (entry.action == Action::alloc) live.insert(entry.address);
      if (entry.action == Action::free_requested && live.erase(entry.address) == 0) return false;
    }
    for (const Block& block : contents_.blocks) {
      if (live.contains(block.address)) continue;
      ends_[block.address] = block.address + block.size;
      if (block.allocated) add(block.size), sizes_[block.address] = block.size;
    }
    return true;
  }

  void allocate(const TraceEntry& entry) {
    auto size = static_cast<int64_t>(round_size(static_cast<uint64_t>(std::max<int64_t>(entry.size, 1)), {}));
    auto segment = segments_.upper_bound(entry.address);
    if (segment != segments_.begin() && (--segment)->second > entry.address) {
      const auto above = ends_.upper_bound(entry.address);
      const int64_t free_end = std::min(segment->second, above == ends_.end() ? INT64_MAX : above->first);
      const bool small = segment->second - segment->first == int64_t{kSmallSegment};
      if (!small && free_end - entry.address - size <= int64_t{kSmallSize}) size = free_end - entry.address;
    }
    ends_[entry.address] = entry.address + size;
    sizes_[entry.address] = size;
    add(size);
  }
  void give_back(int64_t address) {
    const auto found = sizes_.find(address);
    if (found == sizes_.end()) return;
    add(-found->second);
    sizes_.erase(found);
  }
  void add(int64_t change) {
    now_ += change;
    peak_ = std::max(peak_, now_);
  }

  const Contents& contents_;
  std::map<int64_t, int64_t> segments_, ends_;  // by address: of segments and blocks that cannot be taken
  std::unordered_map<int64_t, int64_t> sizes_;  // of allocated blocks
  int64_t now_ = 0, peak_ = 0;
};

}  // namespace

bool is_snapshot_file(const std::filesystem::path& path) {
  return path.extension() == ".pickle" || path.extension() == ".pkl";
}

Snapshot read_snapshot(const std::filesystem::path& path) {
  const Pickle pickle(read_file(path, kMostBytes, "a memory snapshot"), path.string());
  const Contents contents = contents_of(pickle.root());
  using Action = TraceEntry::Action;
  Running requested, reserved;
  bool any = false;
  for (const TraceEntry& entry : contents.trace) {
    if (entry.action == Action::alloc) requested.add(entry.size), any = true;
    if (entry.action == Action::free_requested) requested.add(-entry.size);
    if (entry.action == Action::segment_made) reserved.add(entry.size);
    if (entry.action == Action::segment_gone) reserved.add(-entry.size);
  }
  if (!any)
    fail(
        "{}: has no history of requests on device 0; call torch.cuda.memory._record_memory_history() before "
        "the "
        "model is built",
        path.string());
  if (requested.out_of_range() || reserved.out_of_range() || requested.begin(contents.requested) < 0 ||
      reserved.begin(contents.reserved) < 0)
    fail("{}: its history does not lead to its segments: more is taken than there is at the end",
         path.string());
  return {.path = path,
          .events = contents.trace.size(),
          .requested_peak = requested.peak(contents.requested),
          .reserved_peak = reserved.peak(contents.reserved),
          .allocated_peak = Blocks(contents).allocated_peak()};
}

CheckResult compare(const Snapshot& snapshot, const Phases& phases) {
  CheckResult result;
  result.id = snapshot.path.stem().string();
  result.recording = snapshot.path.string();
  const auto add = [&](const char* field, std::optional<int64_t> recorded, const AllocatorNumber& estimated) {
    result.rows.push_back({.part = {}, .field = field, .recorded = recorded, .estimated = estimated.peak});
    return result.rows.back();
  };
  result.peak_allocated = add("allocated_bytes.peak", snapshot.allocated_peak, phases.peak.allocated_bytes);
  result.peak_requested = add("requested_bytes.peak", snapshot.requested_peak, phases.peak.requested_bytes);
  result.peak_reserved = add("reserved_bytes.peak", snapshot.reserved_peak, phases.peak.reserved_bytes);
  return result;
}

}  // namespace metaprof
