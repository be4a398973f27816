#include "estimate/plan/strategies/module_plans.h"

#include <algorithm>
#include <tuple>

namespace metaprof {
namespace {

// A way to treat one module, or several together. Ways refer to each other by number.
struct Way {
  enum class Kind : uint8_t {
    keep,    // nothing is computed again
    again,   // the whole module is
    module,  // a module of class `of`, treated as `left`
    both     // `left` and `right`
  };
  Kind kind = Kind::keep;
  int32_t of = 0;
  int32_t left = -1, right = -1;
  PlanFigures figures;
};

// None both saves more and costs less than another; by rising savings.
using Frontier = std::vector<int32_t>;

void keep_best(std::vector<Way>& ways, size_t most) {
  std::ranges::stable_sort(ways, [](const Way& a, const Way& b) {
    return std::tuple(a.figures.cost, -a.figures.saved) < std::tuple(b.figures.cost, -b.figures.saved);
  });
  std::vector<Way> best;
  for (const Way& way : ways)
    if (best.empty() || way.figures.saved > best.back().figures.saved) best.push_back(way);
  ways.clear();
  if (best.size() <= most) {
    ways = std::move(best);
    return;
  }
  // One for each equal share of the savings, the cheapest that reaches it; the last saves most.
  const auto step = static_cast<double>(best.back().figures.saved) / static_cast<double>(most - 1);
  double wanted = 0;
  for (const Way& way : best) {
    if (static_cast<double>(way.figures.saved) < wanted && &way != &best.back()) continue;
    ways.push_back(way);
    while (wanted <= static_cast<double>(way.figures.saved)) wanted += step;
  }
}

class ModulePlans : public PlanSeries {
 public:
  ModulePlans(const ModuleTree& tree, const ModulePlanLimits& limits) : tree_(tree), limits_(limits) {
    for (size_t i = 0; i < tree.classes.size(); ++i)
      of_class_.push_back(frontier_of(static_cast<int32_t>(i)));
    if (!tree.modules.empty()) plans_ = of_class_[size_t(tree.modules[0].of)];
  }

  size_t size() const override { return plans_.size(); }
  PlanFigures figures(size_t plan) const override { return way(plans_.at(plan)).figures; }
  RecomputePlan plan(size_t plan) const override {
    std::vector<int32_t> chosen;
    choose(0, plans_.at(plan), chosen);
    std::ranges::sort(chosen);
    return whole_modules(chosen);
  }

 private:
  const Way& way(int32_t index) const { return ways_[size_t(index)]; }

  Frontier stored(std::vector<Way> found) {
    keep_best(found, limits_.plans);
    Frontier frontier;
    for (const Way& one : found) {
      frontier.push_back(static_cast<int32_t>(ways_.size()));
      ways_.push_back(one);
    }
    return frontier;
  }

  Frontier sum(const Frontier& a, const Frontier& b) {
    std::vector<Way> sums;
    sums.reserve(a.size() * b.size());
    for (const int32_t left : a)
      for (const int32_t right : b)
        sums.push_back({.kind = Way::Kind::both,
                        .left = left,
                        .right = right,
                        .figures = {way(left).figures.saved + way(right).figures.saved,
                                    way(left).figures.cost + way(right).figures.cost}});
    return stored(std::move(sums));
  }

  // Of `count` modules of a class together, by doubling.
  Frontier several(int32_t of, int32_t count) {
    std::vector<Way> ones;
    for (const int32_t inner : of_class_[size_t(of)])
      ones.push_back({.kind = Way::Kind::module, .of = of, .left = inner, .figures = way(inner).figures});
    Frontier power = stored(std::move(ones)), all;
    for (; count > 0; count /= 2) {
      if (count % 2 == 1) all = all.empty() ? power : sum(all, power);
      if (count > 1) power = sum(power, power);
    }
    return all;
  }

  Frontier frontier_of(int32_t index) {
    const ModuleClass& one = tree_.classes[size_t(index)];
    Frontier parts = stored({Way()});
    for (const ModuleClass::Part& part : one.parts) parts = sum(parts, several(part.of, part.count));
    const bool is_model = !tree_.modules.empty() && tree_.modules[0].of == index;
    if (one.saved <= 0 || one.saved > limits_.largest || is_model) return parts;
    std::vector<Way> found;
    for (const int32_t part : parts) found.push_back(way(part));
    found.push_back({.kind = Way::Kind::again, .of = index, .figures = {one.saved, one.cost}});
    return stored(std::move(found));
  }

  // The modules of a joint way, each with its own.
  void list_parts(int32_t index, std::vector<std::pair<int32_t, int32_t>>& parts) const {
    const Way& one = way(index);
    if (one.kind == Way::Kind::module) parts.emplace_back(one.of, one.left);
    if (one.kind != Way::Kind::both) return;
    list_parts(one.left, parts);
    list_parts(one.right, parts);
  }

  void choose(int32_t module, int32_t index, std::vector<int32_t>& chosen) const {
    if (way(index).kind == Way::Kind::again) {
      chosen.push_back(module);
      return;
    }
    std::vector<std::pair<int32_t, int32_t>> parts;
    list_parts(index, parts);
    // What saves most goes to the first of those that are alike.
    std::ranges::stable_sort(parts, [&](const auto& a, const auto& b) {
      return way(a.second).figures.saved > way(b.second).figures.saved;
    });
    for (const int32_t inner : tree_.modules[size_t(module)].inside) {
      const auto part =
          std::ranges::find(parts, tree_.modules[size_t(inner)].of, &std::pair<int32_t, int32_t>::first);
      if (part == parts.end()) continue;
      choose(inner, part->second, chosen);
      parts.erase(part);
    }
  }

  const ModuleTree& tree_;
  const ModulePlanLimits limits_;
  std::vector<Way> ways_;
  std::vector<Frontier> of_class_;
  Frontier plans_;
};

}  // namespace

RecomputePlan whole_modules(const std::vector<int32_t>& modules) {
  RecomputePlan plan;
  for (const int32_t module : modules) plan.push_back({.first = module, .last = module});
  return plan;
}

std::unique_ptr<PlanSeries> module_plans(const ModuleTree& tree, const ModulePlanLimits& limits) {
  return std::make_unique<ModulePlans>(tree, limits);
}

}  // namespace metaprof
