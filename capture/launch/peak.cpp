#include "capture/launch/peak.h"

#include <algorithm>
#include <map>
#include <utility>

namespace metaprof {
namespace {

constexpr double kNear = 1.02;
constexpr std::string_view kGraph = "autograd, for the rest of the backward";

StepPart part_of(const RunPhase& row) {
  constexpr std::pair<std::string_view, Phase> kNames[] = {{"forward", Phase::forward},
                                                           {"backward", Phase::backward},
                                                           {"optimizer", Phase::optimizer},
                                                           {"zero_grad", Phase::zero_grad}};
  for (const auto& [name, phase] : kNames)
    if (name == row.phase) return {phase, static_cast<uint32_t>(row.step), row.micro};
  return {};
}

LargeStorage large_storage(const RecordedStorage& recorded, uint32_t number) {
  LargeStorage storage;
  storage.storage = number;
  storage.bytes = recorded.bytes;
  storage.category = recorded.category;
  storage.name = recorded.name;
  storage.shape = recorded.shape;
  storage.dtype = recorded.dtype;
  return storage;
}

// What is alive and no operator's record says what for, but a variable of the program leads to it: directly, or by a graph that was not
// run backward.
void take_what_is_held(PeakMoment& peak, const RecordedDevice& recorded) {
  for (LargeStorage& storage : peak.largest) {
    if (storage.category != Category::temporary || storage.storage >= recorded.held_by.size() ||
        recorded.held_by[storage.storage].empty())
      continue;
    storage.category = recorded.held_as[storage.storage];
    peak.by_category[static_cast<size_t>(Category::temporary)] -= storage.bytes;
    peak.by_category[static_cast<size_t>(storage.category)] += storage.bytes;
  }
}

// Empty: nobody knows. Variables are looked at when the backward is over: what it still needed at its peak is gone then.
std::string holder_of(const RankRun& run, const LargeStorage& storage) {
  if (storage.storage < run.peak_held_by.size() && !run.peak_held_by[storage.storage].empty())
    return run.peak_held_by[storage.storage];
  const bool is_kept =
      run.memory.peak.part.phase == Phase::backward && storage.category == Category::activation;
  return std::string(is_kept ? kGraph : "");
}

}  // namespace

void take_later_peak(RankRun& run, Bytes traced) {
  run.peak_lines = run.recorded.lines;
  run.peak_made_in = run.recorded.made_in;
  run.peak_held_by = run.recorded.held_by;
  const Bytes all{run.memory.phases.peak.allocated_bytes.peak};
  const auto most = std::max_element(run.recorded.phases.begin(), run.recorded.phases.end(),
                                     [](const RunPhase& a, const RunPhase& b) {
                                       return a.numbers.allocated_bytes.peak < b.numbers.allocated_bytes.peak;
                                     });
  // What the trace has is known better: who made it, and in which call.
  if (!run.recorded.peak || static_cast<double>(all.count) <= kNear * static_cast<double>(traced.count)) {
    run.peak_is_near = all > traced && traced.count > 0;
    // The trace's moment is that of most bytes that were asked for; rounded, they can be more in another step.
    if (most != run.recorded.phases.end() && run.memory.peak.bytes.count > 0)
      run.memory.peak.part = part_of(*most);
    return take_what_is_held(run.memory.peak, run.recorded);
  }
  run.peak_is_near = most->numbers.allocated_bytes.peak != run.recorded.peak->allocated.count;
  PeakMoment peak;
  peak.part = part_of(*most);
  run.peak_lines.clear();
  run.peak_made_in.clear();
  run.peak_held_by.clear();
  for (const RecordedStorage& storage : run.recorded.peak->storages) {
    peak.largest.push_back(large_storage(storage, static_cast<uint32_t>(run.peak_lines.size())));
    peak.bytes += storage.bytes;
    peak.by_category[static_cast<size_t>(storage.category)] += storage.bytes;
    run.peak_lines.push_back(storage.line);
    run.peak_made_in.push_back(storage.made_in);
    run.peak_held_by.push_back(storage.held_by);
  }
  run.memory.peak = std::move(peak);
}

RunPeaks peaks_of(const RunReport& report) {
  RunPeaks peaks;
  for (const RankRun& rank : report.ranks) {
    peaks.allocated = std::max(peaks.allocated, Bytes{rank.memory.phases.peak.allocated_bytes.peak});
    peaks.reserved = std::max(peaks.reserved, Bytes{rank.memory.phases.peak.reserved_bytes.peak});
    peaks.ran_out |= !rank.recorded.out_of_memory.empty() && !rank.reserved_since_recovery;
  }
  return peaks;
}

std::vector<PeakHolder> peak_holders(const RankRun& run) {
  std::map<std::string, PeakHolder> found;
  for (const LargeStorage& storage : run.memory.peak.largest) {
    const std::string held_by = holder_of(run, storage);
    if (held_by.empty()) continue;
    PeakHolder& holder = found[held_by];
    holder.held_by = held_by;
    if (holder.storages == 0) holder.category = storage.category;
    holder.bytes += storage.bytes;
    ++holder.storages;
  }
  std::vector<PeakHolder> holders;
  holders.reserve(found.size());
  for (auto& [name, holder] : found) holders.push_back(std::move(holder));
  std::stable_sort(holders.begin(), holders.end(),
                   [](const PeakHolder& a, const PeakHolder& b) { return a.bytes > b.bytes; });
  return holders;
}

std::string holder_of_results(const RankRun& run) {
  for (const PeakHolder& holder : peak_holders(run))
    if (holder.held_by != kGraph &&
        (holder.category == Category::activation || holder.category == Category::kept))
      return holder.held_by;
  return "";
}

}  // namespace metaprof
