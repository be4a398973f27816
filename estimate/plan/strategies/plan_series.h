#pragma once
// What a strategy answers: plans in a row, from the one that recomputes nothing to the one that keeps least. A
// strategy works with costs that add up; whether a plan fits, only a run of the step can say. So a series leaves
// the choice to whoever runs its plans.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace metaprof {

/// What a step takes in addition, because something is computed again or brought back from the host. FLOPs
/// decide; seconds decide between plans with the same FLOPs.
struct RecomputeCost {
  int64_t flops = 0;   ///< as the framework counts, 2 per multiply-add
  double seconds = 0;  ///< on an ideal device, behind an ideal bus

  RecomputeCost& operator+=(const RecomputeCost& other) {
    flops += other.flops;
    seconds += other.seconds;
    return *this;
  }
  friend RecomputeCost operator+(RecomputeCost a, const RecomputeCost& b) { return a += b; }
  // NOLINTNEXTLINE(modernize-use-nullptr): in what is generated
  friend auto operator<=>(const RecomputeCost&, const RecomputeCost&) = default;
};

/// What a strategy expects of a plan.
struct PlanFigures {
  int64_t saved = 0;  ///< bytes that the forward does not keep
  RecomputeCost cost;
};

/// Modules that are computed again as one, and what is done within them; or that save on the host.
struct PlannedRegion {
  int32_t first = 0, last = 0;             ///< of a ModuleTree, in a row; the same: one module
  std::vector<int32_t> kept = {};          ///< calls of its class whose results stay: ModuleClass::calls
  std::vector<PlannedRegion> inside = {};  ///< checkpoints within it
  bool on_host = false;                    ///< nothing is computed again: what is saved waits in host memory
  friend bool operator==(const PlannedRegion&, const PlannedRegion&) = default;
};

/// In the order of the forward, none inside another.
using RecomputePlan = std::vector<PlannedRegion>;

class PlanSeries {
 public:
  virtual ~PlanSeries() = default;
  virtual size_t size() const = 0;
  /// Each plan costs no less than the one before it.
  virtual PlanFigures figures(size_t plan) const = 0;
  virtual RecomputePlan plan(size_t plan) const = 0;
  /// A plan, not the first, before which none saves so many bytes, as far as the series knows without making plans.
  virtual size_t first_that_saves(int64_t /*bytes*/) const { return 1; }
  /// By how much of its cost a plan may be dearer than the cheapest that saves as much, as a solver has proven it;
  /// 0: it is the cheapest. Nothing where there was no solver.
  virtual std::optional<double> gap(size_t /*plan*/) const { return std::nullopt; }
};

}  // namespace metaprof
