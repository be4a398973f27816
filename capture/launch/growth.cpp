#include "capture/launch/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace metaprof {
namespace {

constexpr size_t kWarmUp = 2, kFewestSteps = 3;
constexpr int64_t kFarAway = 1'000'000;  // steps: nobody trains so long with a program that leaks
constexpr double kMostUneven = 1.5;      // of one step's growth to another's: what follows data varies more

// What is allocated after each backward of a program that has no steps: nothing calls an optimizer of PyTorch.
std::vector<int64_t> ends_of_backwards(const RecordedDevice& device) {
  std::vector<int64_t> ends;
  for (const RunPhase& row : device.phases)
    if (row.phase == "backward") ends.push_back(row.numbers.allocated_bytes.current);
  return ends;
}

// What is allocated when a step ends: after the last row of the kind that ends the second step, so that a last step that was cut off
// does not count.
std::vector<int64_t> ends_of_steps(const RecordedDevice& device) {
  std::map<int64_t, std::map<std::string, int64_t>> ends;
  std::map<int64_t, std::string> last;
  for (const RunPhase& row : device.phases) {
    if (row.phase == "setup" || row.phase == "after") continue;
    ends[row.step][row.phase] = row.numbers.allocated_bytes.current;
    last[row.step] = row.phase;
  }
  std::vector<int64_t> out;
  if (last.size() < 2) return ends_of_backwards(device);
  const std::string& kind = std::next(last.begin())->second;
  for (const auto& [step, by_phase] : ends)
    if (const auto found = by_phase.find(kind); found != by_phase.end()) out.push_back(found->second);
  return out;
}

// Its backwards are micro-batches.
bool is_one_step(const RecordedDevice& device) {
  return std::ranges::all_of(device.phases, [](const RunPhase& row) { return row.step == 0; }) &&
         std::ranges::any_of(device.phases, [](const RunPhase& row) { return row.phase == "optimizer"; });
}

// The least growth where each step grows, and none much more than another; 0: it is no growth of that kind.
int64_t even_growth(const std::vector<int64_t>& ends) {
  if (ends.size() < kWarmUp + kFewestSteps) return 0;
  int64_t least = INT64_MAX, most = 0;
  for (size_t i = kWarmUp; i < ends.size(); ++i) {
    least = std::min(least, ends[i] - ends[i - 1]);
    most = std::max(most, ends[i] - ends[i - 1]);
  }
  return least > 0 && static_cast<double>(most) <= kMostUneven * static_cast<double>(least) ? least : 0;
}

// Of the storages that were born in a step before the last of the trace and are still alive at its end: the line that made
// most bytes, after the first step.
void name_source(const RecordedDevice& device, StepGrowth& growth) {
  if (!device.trace) return;
  const Trace& trace = *device.trace;
  std::map<uint32_t, int64_t> step_of;  // living storages
  int64_t step = -1;
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase)
      step = static_cast<Phase>(event.detail) == Phase::setup ? -1 : static_cast<int64_t>(event.id);
    else if (event.kind == Event::Kind::alloc)
      step_of[event.id] = step;
    else if (event.kind == Event::Kind::free)
      step_of.erase(event.id);
  }
  std::map<std::pair<std::string, std::string>, int64_t> bytes;
  std::map<std::string, int64_t> held;
  for (const auto& [storage, born] : step_of) {
    if (born < 1 || born >= step) continue;
    const StorageRecord& record = trace.storages[storage];
    const CallRecord* call = record.call == 0 ? nullptr : &trace.calls[record.call - 1];
    const std::string op = call ? fmt::format("{} in {}", trace.text(call->op), to_string(call->phase)) : "";
    bytes[{storage < device.lines.size() ? device.lines[storage] : "", op}] += record.bytes.count;
    if (storage < device.held_by.size() && !device.held_by[storage].empty())
      held[device.held_by[storage]] += record.bytes.count;
  }
  const auto most = [](const auto& sums) {
    return std::ranges::max_element(sums, {}, [](const auto& entry) { return entry.second; });
  };
  if (bytes.empty()) return;
  growth.line = most(bytes)->first.first;
  growth.op = most(bytes)->first.second;
  if (!held.empty()) growth.held_by = most(held)->first;
}

// Whether the run's peak is in a row, or memory ran out.
bool decides(const RecordedDevice& device, const RunPhase& row) {
  if (!device.out_of_memory.empty()) return true;
  return std::ranges::none_of(device.phases, [&](const RunPhase& other) {
    return other.numbers.allocated_bytes.peak > row.numbers.allocated_bytes.peak;
  });
}

// Whether what the calls of row `i` have left goes later, or with the program: results that are gathered and looked at.
bool is_freed_later(const std::vector<RunPhase>& rows, size_t i, int64_t grown) {
  const int64_t before = i == 0 ? 0 : rows[i - 1].numbers.allocated_bytes.current;
  const bool is_last = i + 1 == rows.size() || rows[i + 1].phase == "after";
  return is_last ||
         std::any_of(rows.begin() + static_cast<std::ptrdiff_t>(i), rows.end(), [&](const RunPhase& row) {
           return row.phase != "after" && row.numbers.allocated_bytes.current <= before + grown / 2;
         });
}

}  // namespace

std::optional<StepGrowth> growth_by_step(const RecordedDevice& device, Bytes outside) {
  const std::vector<int64_t> ends = ends_of_steps(device);
  StepGrowth growth{.per_step = {even_growth(ends)},
                    .steps = std::ssize(ends) - int64_t{kWarmUp},
                    .line = {},
                    .held_by = {},
                    .op = {}};
  if (growth.per_step.count == 0) return std::nullopt;
  const RunPhase& now = device.phases.back();
  const int64_t left =
      std::max<int64_t>(0, device.memory.count - outside.count - now.numbers.reserved_bytes.peak);
  const int64_t more = left / growth.per_step.count;
  if (more >= kFarAway) return std::nullopt;
  growth.ends_at = std::ssize(ends) + more;
  name_source(device, growth);
  return growth;
}

std::optional<SteadySteps> steady_steps(const RecordedDevice& device) {
  const std::vector<int64_t> ends = ends_of_steps(device);
  if (ends.size() < kWarmUp + kFewestSteps || is_one_step(device)) return std::nullopt;
  const auto first = ends.begin() + kWarmUp;
  const auto half = first + (ends.end() - first) / 2;
  if (*std::max_element(half, ends.end()) > *std::max_element(first, half)) return std::nullopt;
  const auto [least, most] = std::minmax_element(first, ends.end());
  return SteadySteps{int64_t{kWarmUp}, std::ssize(ends) - 1, {*least}, {*most}};
}

std::optional<CallGrowth> growth_by_call(const RecordedDevice& device) {
  std::optional<CallGrowth> largest;
  const std::vector<RunPhase>& rows = device.phases;
  for (size_t i = 0; i < rows.size(); ++i) {
    const RunPhase& row = rows[i];
    const int64_t grown = row.growth_by_call.count * row.calls;
    if (grown <= 0 || (largest && largest->per_call.count * largest->calls >= grown)) continue;
    // The backward that follows frees what the calls have kept for it: a model that is called several times a step.
    const int64_t now = row.numbers.allocated_bytes.current;
    if (i + 1 < rows.size() && rows[i + 1].phase == "backward" &&
        rows[i + 1].numbers.allocated_bytes.current <= now - grown / 2)
      continue;
    if (!decides(device, row) && is_freed_later(rows, i, grown)) continue;
    largest = CallGrowth{row.growth_by_call, row.calls, row.name, row.step, row.calls_module, row.calls_line};
  }
  return largest;
}

}  // namespace metaprof
