#include "reports/exports/memory_snapshot.h"

#include <algorithm>

#include "core/formats/pickle_writer.h"

namespace metaprof {
namespace {

std::string_view action(HistoryEvent::Kind kind) {
  switch (kind) {
    case HistoryEvent::Kind::alloc: return "alloc";
    case HistoryEvent::Kind::free_requested: return "free_requested";
    case HistoryEvent::Kind::free_completed: return "free_completed";
    case HistoryEvent::Kind::segment_alloc: return "segment_alloc";
    case HistoryEvent::Kind::segment_free: return "segment_free";
    case HistoryEvent::Kind::segment_map: return "segment_map";
    case HistoryEvent::Kind::segment_unmap: return "segment_unmap";
    default: return "oom";
  }
}

class Snapshot {
 public:
  explicit Snapshot(const AllocatorHistory& history) : history_(history) {}

  std::string write() && {
    out_.begin_dict();
    out_.text("segments");
    out_.begin_list();
    for (const SegmentSnapshot& segment : history_.segments) write_segment(segment);
    out_.end_list();
    out_.text("device_traces");
    out_.begin_list();
    out_.begin_list();
    for (const HistoryEvent& event : history_.events) write_event(event);
    out_.end_list();
    out_.end_list();
    out_.text("allocator_settings");
    out_.begin_dict();
    out_.end_dict();
    out_.end_dict();
    return std::move(out_).finish();
  }

 private:
  void entry(std::string_view key, int64_t number) {
    out_.text(key);
    out_.integer(number);
  }
  void entry(std::string_view key, std::string_view text) {
    out_.text(key);
    out_.text(text);
  }

  void frame(std::string_view function, std::string_view file) {
    out_.begin_dict();
    entry("name", function);
    entry("filename", file);
    entry("line", 0);
    out_.end_dict();
  }

  // The innermost first, as the framework lists them.
  void frames(uint32_t site_index) {
    out_.text("frames");
    out_.begin_list();
    const HistorySite& site = history_.sites[site_index];
    if (!site.op.empty()) frame(site.op, site.module);
    if (!site.module.empty()) frame("forward", site.module);
    frame(site.phase, "step");
    out_.end_list();
  }

  void write_segment(const SegmentSnapshot& segment) {
    int64_t allocated = 0, active = 0, requested = 0;
    for (const BlockSnapshot& block : segment.blocks) {
      if (block.allocated) allocated += static_cast<int64_t>(block.size);
      if (block.active) active += static_cast<int64_t>(block.size);
      if (block.allocated) requested += static_cast<int64_t>(block.requested);
    }
    out_.begin_dict();
    entry("device", 0);
    entry("address", static_cast<int64_t>(segment.address));
    entry("total_size", static_cast<int64_t>(segment.size));
    entry("allocated_size", allocated);
    entry("active_size", active);
    entry("requested_size", requested);
    entry("stream", segment.stream);
    entry("segment_type", segment.large ? "large" : "small");
    out_.text("segment_pool_id");
    out_.begin_tuple();
    out_.integer(static_cast<int64_t>(segment.pool.first));
    out_.integer(static_cast<int64_t>(segment.pool.second));
    out_.end_tuple();
    out_.text("is_expandable");
    out_.boolean(segment.expandable);
    out_.text("frames");
    out_.begin_list();
    out_.end_list();
    out_.text("blocks");
    out_.begin_list();
    for (const BlockSnapshot& block : segment.blocks) write_block(block);
    out_.end_list();
    out_.end_dict();
  }

  void write_block(const BlockSnapshot& block) {
    out_.begin_dict();
    entry("address", static_cast<int64_t>(block.address));
    entry("size", static_cast<int64_t>(block.size));
    entry("requested_size", static_cast<int64_t>(block.requested));
    entry("state", block.allocated ? "active_allocated" : block.active ? "active_pending_free" : "inactive");
    const auto held = std::lower_bound(history_.block_sites.begin(), history_.block_sites.end(),
                                       std::pair<uint64_t, uint32_t>{block.address, 0});
    if (block.allocated && held != history_.block_sites.end() && held->first == block.address) {
      frames(held->second);
    } else {
      out_.text("frames");
      out_.begin_list();
      out_.end_list();
    }
    out_.end_dict();
  }

  void write_event(const HistoryEvent& event) {
    out_.begin_dict();
    entry("action", action(event.kind));
    if (event.kind == HistoryEvent::Kind::out_of_memory) {
      entry("device_free", history_.free_at_failure);
    } else {
      entry("addr", static_cast<int64_t>(event.address));
    }
    entry("size", static_cast<int64_t>(event.size));
    entry("stream", event.stream);
    entry("time_us", event.event);
    frames(event.site);
    out_.end_dict();
  }

  const AllocatorHistory& history_;
  PickleWriter out_;
};

}  // namespace

std::string memory_snapshot(const AllocatorHistory& history) { return Snapshot(history).write(); }

}  // namespace metaprof
