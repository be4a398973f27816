#include "estimate/plan/strategies/chain_plans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace metaprof {
namespace {

// The cheapest way through stages `first` … `last` with some slots of memory.
struct Step {
  RecomputeCost cost;
  int16_t end = -2;  // kNone; kKeep: `first` is kept; else the last stage of a region that begins at `first`
};

constexpr int16_t kNone = -2, kKeep = -1;

class ChainPlans : public PlanSeries {
 public:
  ChainPlans(const std::vector<PlannerStage>& stages, size_t slots)
      : stages_(stages), count_(stages.size()), slots_(slots) {
    int64_t all = 0;
    for (const PlannerStage& stage : stages) all += stage.kept;
    if (all == 0 || count_ == 0) return;
    slot_ = (all + static_cast<int64_t>(slots) - 1) / static_cast<int64_t>(slots);
    slots_ = slots + count_;  // each stage is rounded up
    steps_.resize(count_ * count_ * (slots_ + 1));
    for (size_t length = 1; length <= count_; ++length)
      for (size_t first = 0; first + length <= count_; ++first) solve(first, first + length - 1);
    choose();
  }

  size_t size() const override { return std::max<size_t>(plans_.size(), 1); }
  PlanFigures figures(size_t plan) const override {
    if (plans_.empty()) return {};
    const size_t slots = plans_.at(plan);
    return {static_cast<int64_t>(slots_ - slots) * slot_, step(0, count_ - 1, slots).cost};
  }
  RecomputePlan plan(size_t plan) const override {
    RecomputePlan regions;
    if (!plans_.empty()) list(0, count_ - 1, plans_.at(plan), regions);
    return regions;
  }

 private:
  Step& step(size_t first, size_t last, size_t slots) {
    return steps_[(first * count_ + last) * (slots_ + 1) + slots];
  }
  const Step& step(size_t first, size_t last, size_t slots) const {
    return steps_[(first * count_ + last) * (slots_ + 1) + slots];
  }
  size_t slots_of(int64_t bytes) const { return static_cast<size_t>((bytes + slot_ - 1) / slot_); }

  bool may_join(size_t first, size_t last) const {
    if (stages_[first].kept <= stages_[first].bare) return false;
    return first == last || (stages_[first].list >= 0 && stages_[first].list == stages_[last].list);
  }

  void solve(size_t first, size_t last) {
    const size_t kept = slots_of(stages_[first].kept), bare = slots_of(stages_[first].bare);
    for (size_t slots = kept; slots <= slots_; ++slots) {
      if (first == last) {
        step(first, last, slots) = {{}, kKeep};
      } else if (const Step& rest = step(first + 1, last, slots - kept); rest.end != kNone) {
        step(first, last, slots) = {rest.cost, kKeep};
      }
    }
    RecomputeCost again;
    for (size_t end = first; end < last; ++end) {
      again += stages_[end].cost;
      if (!may_join(first, end)) continue;
      for (size_t slots = bare; slots <= slots_; ++slots) {
        const Step &rest = step(end + 1, last, slots - bare), &inside = step(first, end, slots);
        if (rest.end == kNone || inside.end == kNone) continue;
        const RecomputeCost cost = again + rest.cost + inside.cost;
        Step& best = step(first, last, slots);
        if (best.end == kNone || cost < best.cost) best = {cost, static_cast<int16_t>(end)};
      }
    }
  }

  // Numbers of slots, the most first, of which each costs more than the one before it.
  void choose() {
    for (size_t slots = slots_ + 1; slots-- > 0;) {
      const Step& one = step(0, count_ - 1, slots);
      if (one.end == kNone) break;
      if (plans_.empty() || step(0, count_ - 1, plans_.back()).cost < one.cost)
        plans_.push_back(slots);
      else
        plans_.back() = slots;  // as cheap with less
    }
  }

  void list(size_t first, size_t last, size_t slots, RecomputePlan& regions) const {
    const Step& one = step(first, last, slots);
    if (one.end == kKeep) {
      if (first < last) list(first + 1, last, slots - slots_of(stages_[first].kept), regions);
      return;
    }
    const auto end = static_cast<size_t>(one.end);
    PlannedRegion region{.first = stages_[first].module, .last = stages_[end].module};
    list(first, end, slots, region.inside);
    regions.push_back(std::move(region));
    list(end + 1, last, slots - slots_of(stages_[first].bare), regions);
  }

  const std::vector<PlannerStage> stages_;
  const size_t count_;
  size_t slots_;
  int64_t slot_ = 1;         // bytes
  std::vector<Step> steps_;  // by first stage, last stage, slots
  std::vector<size_t> plans_;
};

// A few plans that are known.
class ListedPlans : public PlanSeries {
 public:
  void add(PlanFigures figures, RecomputePlan plan) {
    figures_.push_back(figures);
    plans_.push_back(std::move(plan));
  }
  size_t size() const override { return plans_.size(); }
  PlanFigures figures(size_t plan) const override { return figures_.at(plan); }
  RecomputePlan plan(size_t plan) const override { return plans_.at(plan); }

 private:
  std::vector<PlanFigures> figures_;
  std::vector<RecomputePlan> plans_;
};

}  // namespace

std::vector<PlannerStage> chain_of(const ModuleTree& tree) {
  std::vector<PlannerStage> stages;
  for (size_t i = 0; i < tree.modules.size(); ++i) {
    const Module& module = tree.modules[i];
    if (module.list < 0) continue;
    const ModuleClass& one = tree.classes[size_t(module.of)];
    stages.push_back({.module = static_cast<int32_t>(i),
                      .list = module.list,
                      .kept = one.saved + one.bare,
                      .bare = one.bare,
                      .cost = one.cost});
  }
  return stages;
}

std::unique_ptr<PlanSeries> chain_plans(const std::vector<PlannerStage>& stages, size_t slots) {
  return std::make_unique<ChainPlans>(stages, slots);
}

namespace {

// All lists in stretches, `length` of them of a list of so many.
template <class Length>
void add_stretches(const std::vector<PlannerStage>& stages, Length length_of, ListedPlans& series) {
  PlanFigures figures;
  RecomputePlan plan;
  for (size_t first = 0; first < stages.size();) {
    size_t end = first + 1;
    while (end < stages.size() && stages[end].list == stages[first].list) ++end;
    const size_t length = length_of(end - first);
    for (size_t begin = first; begin < end; begin += length) {
      while (begin < end && stages[begin].kept <= stages[begin].bare) ++begin;  // no stretch can begin there
      if (begin == end) break;
      const size_t last = std::min(begin + length, end) - 1;
      plan.push_back({.first = stages[begin].module, .last = stages[last].module});
      for (size_t i = begin; i <= last; ++i) {
        figures.saved += stages[i].kept - (i == begin ? stages[i].bare : 0);
        figures.cost += stages[i].cost;
      }
    }
    first = end;
  }
  if (!plan.empty()) series.add(figures, std::move(plan));
}

}  // namespace

std::unique_ptr<PlanSeries> equal_stretch_plans(const std::vector<PlannerStage>& stages) {
  std::map<int32_t, size_t> counts;
  for (const PlannerStage& stage : stages) ++counts[stage.list];
  size_t longest = 0;
  for (const auto& [list, count] : counts) longest = std::max(longest, count);
  auto series = std::make_unique<ListedPlans>();
  series->add({}, {});
  for (size_t length = longest; length > 0; --length)
    add_stretches(
        stages, [&](size_t count) { return std::min(length, count); }, *series);
  return series;
}

std::unique_ptr<PlanSeries> square_root_plans(const std::vector<PlannerStage>& stages) {
  auto series = std::make_unique<ListedPlans>();
  series->add({}, {});
  add_stretches(
      stages,
      [](size_t count) {
        const auto of = static_cast<double>(count);
        return static_cast<size_t>(std::ceil(of / std::floor(std::sqrt(of))));
      },
      *series);
  return series;
}

}  // namespace metaprof
