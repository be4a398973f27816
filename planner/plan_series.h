#pragma once
// What a strategy answers: plans in a row, from the one that recomputes nothing to the one that keeps least. A
// strategy works with costs that add up; whether a plan fits, only a run of the step can say. So a series leaves
// the choice to whoever runs its plans.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace metaprof {

/// Of computing something again. FLOPs decide; seconds decide between plans with the same FLOPs.
struct RecomputeCost {
  int64_t flops = 0;   ///< as the framework counts, 2 per multiply-add
  double seconds = 0;  ///< on an ideal device

  RecomputeCost& operator+=(const RecomputeCost& other) {
    flops += other.flops;
    seconds += other.seconds;
    return *this;
  }
  friend RecomputeCost operator+(RecomputeCost a, const RecomputeCost& b) { return a += b; }
  friend auto operator<=>(const RecomputeCost&, const RecomputeCost&) = default;
};

/// What a strategy expects of a plan.
struct PlanFigures {
  int64_t saved = 0;  ///< bytes that the forward does not keep
  RecomputeCost cost;
};

/// Stages `first` … `last` of a chain, computed again together.
struct StageRange {
  int32_t first = 0, last = 0;
  friend bool operator==(const StageRange&, const StageRange&) = default;
};

/// What to compute again: modules of a ModuleTree, or stretches of a chain, in order, none inside another.
struct PlannedRegions {
  std::vector<int32_t> modules;
  std::vector<StageRange> stages;
};

class PlanSeries {
 public:
  virtual ~PlanSeries() = default;
  virtual size_t size() const = 0;
  /// Each plan costs no less than the one before it.
  virtual PlanFigures figures(size_t plan) const = 0;
  virtual PlannedRegions regions(size_t plan) const = 0;
};

}  // namespace metaprof
