#include "estimate/plan/plan_refinement.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace metaprof {
namespace {

bool is_module(const PlannedRegion& region) { return region.first == region.last; }

class Refinement {
 public:
  Refinement(const ModuleTree& tree, RecomputePlan plan, const PlanHolds& holds)
      : tree_(tree), plan_(std::move(plan)), holds_(holds) {}

  RecomputePlan refine() {
    leave_out_modules();
    for (size_t region = plan_.size(); region-- > 0;) shorten(region);
    keep_more_results();
    return std::move(plan_);
  }

 private:
  int32_t class_of(const PlannedRegion& region) const { return tree_.modules[size_t(region.first)].of; }

  // Takes the plan with the most changes, of `count`, that holds; with more of them a plan takes more memory.
  template <class Changed>
  void change_most(size_t count, const Changed& changed) {
    size_t most = 0;
    RecomputePlan best;
    while (most < count) {
      const size_t middle = most + (count - most + 1) / 2;
      RecomputePlan plan = changed(middle);
      if (holds_(plan)) {
        most = middle;
        best = std::move(plan);
      } else {
        count = middle - 1;
      }
    }
    if (most > 0) plan_ = std::move(best);
  }

  void leave_out_modules() {
    std::map<int32_t, size_t> counts;  // by class
    for (const PlannedRegion& region : plan_)
      if (is_module(region)) ++counts[class_of(region)];
    std::vector<int32_t> classes;
    classes.reserve(counts.size());
    for (const auto& [of, count] : counts) classes.push_back(of);
    std::ranges::stable_sort(classes, [&](int32_t a, int32_t b) {
      return tree_.classes[size_t(b)].cost < tree_.classes[size_t(a)].cost;
    });
    for (const int32_t of : classes)
      change_most(counts[of], [&](size_t fewer) { return without_last(of, counts[of] - fewer); });
  }

  // Without regions of a class beyond the first `count`.
  RecomputePlan without_last(int32_t of, size_t count) const {
    RecomputePlan fewer;
    for (const PlannedRegion& region : plan_)
      if (!is_module(region) || class_of(region) != of || count-- > 0) fewer.push_back(region);
    return fewer;
  }

  // The last modules of a stretch are kept; two stay at least.
  void shorten(size_t region) {
    if (is_module(plan_[region]) || !plan_[region].inside.empty()) return;
    std::vector<int32_t> modules;
    for (int32_t module = plan_[region].first; module <= plan_[region].last; ++module)
      if (tree_.modules[size_t(module)].list == tree_.modules[size_t(plan_[region].first)].list)
        modules.push_back(module);
    change_most(modules.size() - 2, [&](size_t fewer) {
      RecomputePlan shorter = plan_;
      shorter[region].last = modules[modules.size() - 1 - fewer];
      return shorter;
    });
  }

  // Calls of a class whose results take as many bytes and FLOPs.
  struct Kind {
    int32_t of = 0;
    int64_t bytes = 0, flops = 0;
    bool holds(const OperatorCall& call) const { return call.bytes == bytes && call.cost.flops == flops; }
    double flops_per_byte() const { return static_cast<double>(flops) / static_cast<double>(bytes); }
  };

  std::vector<Kind> dearest_kinds() const {
    std::set<std::tuple<int32_t, int64_t, int64_t>> known;
    std::vector<Kind> kinds;
    for (const PlannedRegion& region : plan_) {
      if (!is_module(region)) continue;
      for (const OperatorCall& call : tree_.classes[size_t(class_of(region))].calls)
        if (call.cost.flops > 0 && known.emplace(class_of(region), call.bytes, call.cost.flops).second)
          kinds.push_back({class_of(region), call.bytes, call.cost.flops});
    }
    std::ranges::stable_sort(kinds, std::greater<>(), &Kind::flops_per_byte);
    return kinds;
  }

  void keep_more_results() {
    for (const Kind& kind : dearest_kinds()) {
      const auto made_again = calls_made_again(kind);
      change_most(made_again.size(), [&](size_t more) {
        RecomputePlan plan = plan_;
        for (size_t i = 0; i < more; ++i) plan[made_again[i].first].kept.push_back(made_again[i].second);
        for (PlannedRegion& region : plan) std::ranges::sort(region.kept);
        return plan;
      });
    }
  }

  // Index of the region, and of the call in its class. The latest first.
  std::vector<std::pair<size_t, int32_t>> calls_made_again(const Kind& kind) const {
    std::vector<std::pair<size_t, int32_t>> found;
    for (size_t i = plan_.size(); i-- > 0;) {
      const PlannedRegion& region = plan_[i];
      if (!is_module(region) || class_of(region) != kind.of || region.on_host || !region.inside.empty())
        continue;
      const auto& calls = tree_.classes[size_t(kind.of)].calls;
      for (size_t call = calls.size(); call-- > 0;)
        if (kind.holds(calls[call]) && std::ranges::count(region.kept, static_cast<int32_t>(call)) == 0)
          found.emplace_back(i, static_cast<int32_t>(call));
    }
    return found;
  }

  const ModuleTree& tree_;
  RecomputePlan plan_;
  const PlanHolds& holds_;
};

}  // namespace

RecomputePlan refined(const ModuleTree& tree, RecomputePlan plan, const PlanHolds& holds) {
  return Refinement(tree, std::move(plan), holds).refine();
}

}  // namespace metaprof
