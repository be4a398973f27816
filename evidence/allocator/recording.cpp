#include "evidence/allocator/recording.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>

#include "core/error.h"
#include "evidence/allocator/recording_head.h"
#include "formats/gzip_lines.h"

namespace metaprof {

namespace {

constexpr std::size_t kMostEvents = 20'000'000;  // a recording of a model has some 10'000
constexpr std::uint64_t kLargestRequest = std::uint64_t{1} << 62;
constexpr std::uint64_t kMostStreams = 1u << 15;

// Reads the lines one by one and checks that each is possible after those before it.
class LogReader {
 public:
  explicit LogReader(Recording& recording) : recording_(recording), lines_(recording.log_path) {}

  void read() {
    std::string_view line;
    while (lines_.next(line)) read_line(line);
    if (lines_.number() == 0) bad("the file is empty");
    if (depth_ > 0) bad(fmt::format("{} operators have not ended; the file is truncated", depth_));
    if (next_phase_ < recording_.phases.size()) {
      bad(fmt::format("phase '{}' of the .json is missing; the file is truncated or belongs to another .json",
                      recording_.phases[next_phase_].name));
    }
    if (recording_.allocations == 0) bad("there are no requests to the allocator in it; nothing to replay");
  }

 private:
  struct Live {
    AllocationNumber number = 0;
    std::size_t freed_by = 0;  // index of the event; 0: held by the program
  };

  [[noreturn]] void bad(std::string_view what) const {
    fail("{}:{}: {}", recording_.log_path, lines_.number(), what);
  }
  [[noreturn]] void bad_line(std::string_view line) const {
    bad(fmt::format("'{}' is not a line of a recording", line.substr(0, 60)));
  }

  void read_line(std::string_view line) {
    if (line.empty()) bad("empty line");
    if (line[0] == '<') {
      if (depth_-- == 0) bad("an operator ends that has not begun");
      return;
    }
    if (line.size() < 2 || line[1] != ' ') bad_line(line);
    rest_ = line.substr(2);
    switch (line[0]) {
      case '>': ++depth_; return;
      case '#': return read_mark(line);
      case '+': return read_malloc(line);
      case '-': return read_free(line);
      case 'c': return read_completed(line);
      case 'S': return read_segment(line, SegmentEvent::Kind::allocate);
      case 'R': return read_segment(line, SegmentEvent::Kind::free);
      case 'M': return read_segment(line, SegmentEvent::Kind::map);
      case 'U': return read_segment(line, SegmentEvent::Kind::unmap);
      case '!': return read_out_of_memory(line);
      case '=': bad("operator cases; `metaprof ops --replay` replays them");
      default: bad_line(line);
    }
  }

  RecordedEvent& add(RecordedEvent::Kind kind) {
    if (recording_.events.size() == kMostEvents) bad(fmt::format("more than {} events", kMostEvents));
    RecordedEvent& event = recording_.events.emplace_back();
    event.kind = kind;
    event.line = static_cast<std::uint32_t>(lines_.number());
    return event;
  }

  void read_mark(std::string_view line) {
    if (!rest_.starts_with("phase ")) return;
    rest_.remove_prefix(6);
    if (next_phase_ == recording_.phases.size() || rest_ != recording_.phases[next_phase_].name) {
      const bool more = next_phase_ < recording_.phases.size();
      bad(fmt::format("'{}', but the .json {}{}", line, more ? "has now " : "has no more phases",
                      more ? recording_.phases[next_phase_].name : ""));
    }
    add(RecordedEvent::Kind::phase).bytes = next_phase_++;
  }

  void read_malloc(std::string_view line) {
    RecordedEvent& event = add(RecordedEvent::Kind::malloc);
    event.address = hexadecimal(line);
    event.bytes = request_size(line);
    read_place(line, event);
    event.allocation = recording_.allocations++;
    const auto [it, fresh] = live_.try_emplace(event.address, Live{event.allocation});
    if (fresh) return;
    if (it->second.freed_by == 0)
      bad(fmt::format("block {:x} is handed out, but was not returned", event.address));
    it->second = Live{event.allocation};
  }

  void read_free(std::string_view line) {
    RecordedEvent& event = add(RecordedEvent::Kind::free);
    event.address = hexadecimal(line);
    expect_end(line);
    const auto it = live_.find(event.address);
    if (it == live_.end() || it->second.freed_by != 0) {
      bad(fmt::format("block {:x} is returned, but was not handed out", event.address));
    }
    event.allocation = it->second.number;
    it->second.freed_by = recording_.events.size() - 1;
  }

  void read_completed(std::string_view line) {
    RecordedEvent& event = add(RecordedEvent::Kind::free_completed);
    event.address = hexadecimal(line);
    expect_end(line);
    const auto it = live_.find(event.address);
    if (it == live_.end() || it->second.freed_by == 0 || recording_.events[it->second.freed_by].delayed) {
      bad(fmt::format("block {:x} becomes free, but was not returned", event.address));
    }
    event.allocation = it->second.number;
    recording_.events[it->second.freed_by].delayed = true;
  }

  void read_segment(std::string_view line, SegmentEvent::Kind kind) {
    RecordedEvent& event = add(RecordedEvent::Kind::segment);
    event.segment = kind;
    event.address = hexadecimal(line);
    event.bytes = decimal(line);
    read_place(line, event);
  }

  void read_out_of_memory(std::string_view line) {
    if (!rest_.starts_with("oom ")) bad_line(line);
    rest_.remove_prefix(4);
    add(RecordedEvent::Kind::out_of_memory).bytes = request_size(line);
    expect_end(line);
  }

  std::uint64_t request_size(std::string_view line) {
    const std::uint64_t bytes = decimal(line);
    if (bytes == 0 || bytes > kLargestRequest) bad(fmt::format("a request of {} bytes", bytes));
    return bytes;
  }

  // The ` sK` and ` pI.J` at the end.
  void read_place(std::string_view line, RecordedEvent& event) {
    if (rest_.starts_with("s")) {
      rest_.remove_prefix(1);
      const std::uint64_t stream = decimal(line);
      if (stream >= kMostStreams) bad_line(line);
      event.stream = static_cast<StreamId>(stream);
    }
    if (rest_.starts_with("p")) {
      rest_.remove_prefix(1);
      PoolId pool;
      pool.first = number(line, 10);
      if (!rest_.starts_with(".")) bad_line(line);
      rest_.remove_prefix(1);
      pool.second = decimal(line);
      event.pool = pool_index(pool);
    }
    expect_end(line);
  }

  std::uint32_t pool_index(PoolId pool) {
    auto& pools = recording_.pools;
    const auto it = std::find(pools.begin(), pools.end(), pool);
    const auto index = static_cast<std::uint32_t>(it - pools.begin());
    if (it == pools.end()) pools.push_back(pool);
    return index;
  }

  std::uint64_t number(std::string_view line, int base) {
    std::uint64_t value = 0;
    const auto [end, status] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (status != std::errc{} || end == rest_.data()) bad_line(line);
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  void skip_blank(std::string_view line) {
    if (rest_.empty()) return;
    if (rest_[0] != ' ' || rest_.size() == 1) bad_line(line);
    rest_.remove_prefix(1);
  }
  std::uint64_t decimal(std::string_view line) {
    const std::uint64_t value = number(line, 10);
    skip_blank(line);
    return value;
  }
  std::uint64_t hexadecimal(std::string_view line) {
    const std::uint64_t value = number(line, 16);
    skip_blank(line);
    return value;
  }
  void expect_end(std::string_view line) const {
    if (!rest_.empty()) bad_line(line);
  }

  Recording& recording_;
  GzipLines lines_;
  std::string_view rest_;  // of the line being read
  std::size_t depth_ = 0;
  std::size_t next_phase_ = 0;
  std::unordered_map<std::uint64_t, Live>
      live_;  // by address; also what was returned, until handed out again
};

std::filesystem::path json_beside(std::filesystem::path log) {
  if (log.extension() == ".gz") log.replace_extension();
  if (log.extension() != ".log") {
    fail("{}: a recording's log is called X.log.gz, and X.json stands beside it", log.string());
  }
  return log.replace_extension(".json");
}

}  // namespace

Recording read_recording(const std::filesystem::path& log) {
  Recording recording;
  recording.log_path = log.string();
  recording.pools.push_back(PoolId{});
  LogReader reader(recording);  // first, so that a missing log is the first thing said
  read_recording_head(json_beside(log), recording);
  reader.read();
  return recording;
}

}  // namespace metaprof
