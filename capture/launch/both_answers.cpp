#include "capture/launch/both_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/launch/peak.h"

namespace metaprof {
namespace {

bool has_unknown_answers(const RunReport& report) {
  return std::ranges::any_of(report.ranks, [](const RankRun& rank) {
    return std::ranges::any_of(rank.recorded.reads,
                               [](const DataRead& read) { return read.source == "unknown"; });
  });
}

}  // namespace

RunReport larger_of(RunReport zero, RunReport all) {
  const RunPeaks of_zero = peaks_of(zero), of_all = peaks_of(all);
  // Where memory ran out, the figures are what was taken by then.
  const bool all_is_larger =
      of_all.ran_out != of_zero.ran_out ? of_all.ran_out : of_all.reserved.count >= of_zero.reserved.count;
  RunReport &larger = all_is_larger ? all : zero, &other = all_is_larger ? zero : all;
  larger.other_answers = {!all_is_larger, other.ended, all_is_larger ? of_zero : of_all};
  return std::move(larger);
}

RunReport run_with_both_answers(const LaunchOptions& options,
                                const std::function<void(const Progress&)>& progress,
                                const std::function<void()>& tell) {
  RunReport zero = run_recorded(options, progress);
  if (!zero.problem.empty() || !has_unknown_answers(zero)) return zero;
  tell();
  LaunchOptions with_all = options;
  with_all.assumptions.emplace_back("all");
  RunReport all = run_recorded(with_all, progress);
  if (!all.problem.empty()) {
    zero.notes.push_back(fmt::format("with --assume all nothing was recorded: {}", all.problem));
    return zero;
  }
  return larger_of(std::move(zero), std::move(all));
}

}  // namespace metaprof
