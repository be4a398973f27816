#include "validation/recordings/step_log.h"

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "core/formats/file.h"
#include "core/formats/gzip_lines.h"

namespace metaprof {
namespace {

constexpr size_t kMostEvents = 20'000'000;  // a recording of a model has some 10'000
constexpr int64_t kLargestRequest = int64_t{1} << 62;

// Checks that each line is possible after those before it.
class StepLogReader {
 public:
  StepLogReader(Recording& recording, GzipLines& lines) : recording_(recording), lines_(lines) {}

  void read() {
    LogReader log(16);
    std::string_view text;
    while (lines_.next(text)) {
      try {
        add(log.read(text, lines_.number()));
      } catch (const Error& error) {
        bad(error.what());
      }
    }
    const auto& phases = recording_.head.phases;
    if (lines_.number() == 0) bad("the file is empty");
    if (log.depth() > 0) bad(fmt::format("{} operators have not ended; the file is truncated", log.depth()));
    if (next_phase_ < phases.size() && recording_.head.kind == HeadKind::recording)
      bad(fmt::format("phase '{}' of the .json is missing; the file is truncated or belongs to another .json",
                      phases[next_phase_].name));
    recording_.head.phases.resize(next_phase_);
    if (recording_.allocations == 0) bad("there are no requests to the allocator in it; nothing to repeat");
  }

 private:
  struct Live {
    AllocationNumber number = 0;
    size_t freed_by = 0;  // index of the event; 0: held by the program
  };

  [[noreturn]] void bad(std::string_view what) const {
    fail("{}:{}: {}", recording_.log_path, lines_.number(), what);
  }

  void add(const LogLine& line) {
    using Kind = LogLine::Kind;
    switch (line.kind) {
      case Kind::begin:
      case Kind::end: return;
      case Kind::mark: return add_mark(line);
      case Kind::request: return add_request(line);
      case Kind::give_back: return add_give_back(line);
      case Kind::completed: return add_completed(line);
      case Kind::segment: {
        RecordedEvent& event = add_event(RecordedEvent::Kind::segment, line);
        event.segment = line.segment;
        return;
      }
      case Kind::out_of_memory:
        check_request(line);
        add_event(RecordedEvent::Kind::out_of_memory, line);
        return;
      case Kind::title: fail("operator cases; `metaprof ops --replay` repeats them");
    }
  }

  RecordedEvent& add_event(RecordedEvent::Kind kind, const LogLine& line) {
    if (recording_.events.size() == kMostEvents) fail("more than {} events", kMostEvents);
    return recording_.events.emplace_back(RecordedEvent{.kind = kind,
                                                        .line = static_cast<uint32_t>(line.number),
                                                        .stream = line.stream,
                                                        .pool = pool_index(line.pool),
                                                        .address = static_cast<uint64_t>(line.block),
                                                        .bytes = static_cast<uint64_t>(line.bytes)});
  }

  void add_mark(const LogLine& line) {
    if (!line.text.starts_with("phase ")) return;
    const std::string_view name = line.text.substr(6);
    const auto& phases = recording_.head.phases;
    const bool more = next_phase_ < phases.size();
    if (!more || name != phases[next_phase_].name)
      fail("'# {}', but the .json {}{}", line.text, more ? "has now " : "has no more phases",
           more ? phases[next_phase_].name : "");
    add_event(RecordedEvent::Kind::phase, line).bytes = next_phase_++;
  }

  static void check_request(const LogLine& line) {
    if (line.bytes == 0 || line.bytes > kLargestRequest) fail("a request of {} bytes", line.bytes);
  }

  void add_request(const LogLine& line) {
    check_request(line);
    RecordedEvent& event = add_event(RecordedEvent::Kind::request, line);
    event.allocation = recording_.allocations++;
    const auto [it, fresh] = live_.try_emplace(event.address, Live{event.allocation});
    if (!fresh && it->second.freed_by == 0)
      fail("block {:x} is handed out, but was not returned", event.address);
    it->second = Live{event.allocation};
  }

  void add_give_back(const LogLine& line) {
    RecordedEvent& event = add_event(RecordedEvent::Kind::give_back, line);
    const auto it = live_.find(event.address);
    if (it == live_.end() || it->second.freed_by != 0)
      fail("block {:x} is returned, but was not handed out", event.address);
    event.allocation = it->second.number;
    it->second.freed_by = recording_.events.size() - 1;
  }

  void add_completed(const LogLine& line) {
    RecordedEvent& event = add_event(RecordedEvent::Kind::completed, line);
    const auto it = live_.find(event.address);
    if (it == live_.end() || it->second.freed_by == 0 || recording_.events[it->second.freed_by].delayed)
      fail("block {:x} becomes free, but was not returned", event.address);
    event.allocation = it->second.number;
    recording_.events[it->second.freed_by].delayed = true;
  }

  uint32_t pool_index(PoolId pool) {
    auto& pools = recording_.pools;
    const auto it = std::find(pools.begin(), pools.end(), pool);
    const auto index = static_cast<uint32_t>(it - pools.begin());
    if (it == pools.end()) pools.push_back(pool);
    return index;
  }

  Recording& recording_;
  GzipLines& lines_;
  size_t next_phase_ = 0;
  std::unordered_map<uint64_t, Live> live_;  // by address; also what was returned, until handed out again
};

std::filesystem::path json_beside(std::filesystem::path log) {
  if (log.extension() == ".gz") log.replace_extension();
  if (log.extension() != ".log")
    fail("{}: a recording's log is called X.log.gz, and X.json stands beside it", log.string());
  return log.replace_extension(".json");
}

}  // namespace

Recording read_recording(const std::filesystem::path& log) {
  GzipLines lines(log, "the log of a recording");  // first, so that a missing log is the first thing said
  const std::filesystem::path json = json_beside(log);
  if (!is_there(json))
    fail("{}: no such file; a recording's configuration and statistics stand in the .json beside its log",
         json.string());
  const JsonText text(read_head_text(json), json.string(), kHeadHint);
  Recording recording{.head = head_of(json, text.root()),
                      .log_path = log.string(),
                      .pools = {PoolId{}},
                      .events = {},
                      .allocations = 0};
  StepLogReader(recording, lines).read();
  return recording;
}

AtWork at_work(const std::filesystem::path& log, int64_t line) {
  AtWork result;
  LogReader reader(16);
  GzipLines lines(log, "the log of a recording");
  for (std::string_view text; lines.next(text) && lines.number() < line;)
    result.pass(reader.read(text, lines.number()));
  return result;
}

}  // namespace metaprof
