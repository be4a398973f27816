#include "estimate/plan/strategies/operator_plans.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "estimate/plan/strategies/integer_program.h"
#include "estimate/plan/strategies/module_plans.h"

namespace metaprof {
namespace {

// FLOPs decide; seconds decide between plans with the same FLOPs.
class Weights {
 public:
  explicit Weights(const RecomputeCost& all)
      : flops_(all.flops > 0 ? 1e3 / static_cast<double>(all.flops) : 0),
        seconds_(all.seconds > 0 ? 1 / all.seconds : 0) {}
  double of(const RecomputeCost& cost) const {
    return flops_ * static_cast<double>(cost.flops) + seconds_ * cost.seconds;
  }

 private:
  double flops_, seconds_;
};

// How many modules there are of each class.
std::vector<int64_t> numbers_of(const ModuleTree& tree) {
  std::vector<int64_t> numbers(tree.classes.size());
  for (const Module& module : tree.modules) ++numbers[size_t(module.of)];
  return numbers;
}

RecomputeCost cost_of_all(const ModuleTree& tree) {
  RecomputeCost all;
  for (const Module& module : tree.modules) all += tree.classes[size_t(module.of)].cost;
  return all;
}

// Calls of a class whose results take as many bytes and cost as much: only how many of them stay matters. So a
// module around blocks that repeat has as many groups as one of them.
using CallGroup = std::vector<int32_t>;

std::vector<CallGroup> groups_of(const std::vector<OperatorCall>& calls) {
  std::map<std::tuple<int64_t, int64_t, double>, CallGroup> groups;
  for (size_t call = 0; call < calls.size(); ++call)
    groups[{calls[call].bytes, calls[call].cost.flops, calls[call].cost.seconds}].push_back(
        static_cast<int32_t>(call));
  std::vector<CallGroup> all;
  all.reserve(groups.size());
  for (auto& [what, group] : groups) all.push_back(std::move(group));
  return all;
}

// What is done with the modules of a class.
struct Choice {
  int64_t again = 0;          // so many are computed again
  std::vector<int64_t> kept;  // per group of calls: the results of so many, of all of them, stay
};

struct Solved {
  std::vector<Choice> choices;  // per class
  PlanFigures figures;
  double gap = 0;
};

// Gives a choice for each class to modules.
class Assignment {
 public:
  Assignment(const ModuleTree& tree, const std::vector<std::vector<CallGroup>>& groups,
             const std::vector<Choice>& choices)
      : tree_(tree) {
    for (const int32_t inner : tree.modules[0].inside)
      reached_[tree.modules[size_t(inner)].of].push_back(inner);
    // Wholes come after their parts.
    for (size_t of = choices.size(); of-- > 0;) assign(static_cast<int32_t>(of), choices[of], groups[of]);
    std::ranges::sort(plan_, {}, &PlannedRegion::first);
  }

  RecomputePlan plan() { return std::move(plan_); }

 private:
  // Those with the earlier forward are computed again, and of these the later ones keep all results that stay:
  // what is kept then is kept for a shorter time, and is there when such a module is computed again.
  void assign(int32_t of, const Choice& choice, const std::vector<CallGroup>& groups) {
    std::vector<int32_t>& modules = reached_[of];
    std::ranges::sort(modules);
    for (size_t i = 0; i < modules.size(); ++i) {
      if (static_cast<int64_t>(i) >= choice.again) {
        for (const int32_t inner : tree_.modules[size_t(modules[i])].inside)
          reached_[tree_.modules[size_t(inner)].of].push_back(inner);
        continue;
      }
      PlannedRegion region{.first = modules[i], .last = modules[i]};
      const int64_t later = choice.again - 1 - static_cast<int64_t>(i);
      for (size_t group = 0; group < choice.kept.size(); ++group) {
        const auto size = static_cast<int64_t>(groups[group].size());
        const int64_t stay = std::clamp<int64_t>(choice.kept[group] - later * size, 0, size);
        region.kept.insert(region.kept.end(), groups[group].end() - stay, groups[group].end());
      }
      std::ranges::sort(region.kept);
      plan_.push_back(std::move(region));
    }
  }

  const ModuleTree& tree_;
  std::map<int32_t, std::vector<int32_t>> reached_;  // by class
  RecomputePlan plan_;
};

class OperatorPlans : public PlanSeries {
 public:
  OperatorPlans(const ModuleTree& tree, const OperatorPlanLimits& limits)
      : tree_(tree),
        limits_(limits),
        numbers_(numbers_of(tree)),
        weights_(cost_of_all(tree)),
        solved_(limits.plans) {
    set_variables();
    most_ = largest_savings();
  }

  // Without time for the solver there are no plans.
  size_t size() const override { return most_ > 0 && *limits_.seconds > 0 ? solved_.size() : 1; }
  PlanFigures figures(size_t plan) const override { return solved(plan).figures; }
  std::optional<double> gap(size_t plan) const override { return solved(plan).gap; }
  size_t first_that_saves(int64_t bytes) const override {
    size_t plan = 1;
    while (plan + 1 < size() && savings_of(plan) < bytes) ++plan;
    return plan;
  }
  RecomputePlan plan(size_t plan) const override {
    if (plan == 0) return {};
    return Assignment(tree_, groups_, solved(plan).choices).plan();
  }

 private:
  // Variables of a class; −1: there is none.
  struct Variables {
    int again = -1, open = -1;
    std::vector<int> kept;  // per group of calls
  };

  bool is_candidate(size_t of) const {
    const ModuleClass& one = tree_.classes[of];
    return one.saved > 0 && one.saved <= limits_.largest && static_cast<int32_t>(of) != tree_.modules[0].of;
  }

  int add_variable(double cost, int64_t most) {
    program_.variables.push_back({.cost = cost, .most = most});
    return static_cast<int>(program_.variables.size()) - 1;
  }

  void set_variables() {
    IntegerProgram::Row savings{.terms = {}, .least = 0, .most = kUnlimited};
    for (size_t of = 0; of < tree_.classes.size(); ++of) {
      const ModuleClass& one = tree_.classes[of];
      Variables& own = variables_.emplace_back();
      own.open = add_variable(0, numbers_[of]);
      groups_.emplace_back();
      if (!is_candidate(of)) continue;
      groups_.back() = groups_of(one.calls);
      own.again = add_variable(weights_.of(one.cost), numbers_[of]);
      savings.terms.emplace_back(own.again, mebibytes(one.saved));
      for (const CallGroup& group : groups_.back()) {
        const OperatorCall& call = one.calls[size_t(group.front())];
        const auto size = static_cast<int64_t>(group.size());
        own.kept.push_back(add_variable(-weights_.of(call.cost), numbers_[of] * size));
        savings.terms.emplace_back(own.kept.back(), -mebibytes(call.bytes));
        program_.rows.push_back({.terms = {{own.kept.back(), 1}, {own.again, -static_cast<double>(size)}},
                                 .least = -kUnlimited,
                                 .most = 0});
      }
    }
    add_reach();
    savings_row_ = program_.rows.size();
    program_.rows.push_back(std::move(savings));
  }

  // A module is computed again or opened where the module around it is open; the model is.
  void add_reach() {
    std::vector<IntegerProgram::Row> reach(tree_.classes.size());
    for (size_t of = 0; of < reach.size(); ++of) {
      reach[of].terms.emplace_back(variables_[of].open, 1);
      if (variables_[of].again >= 0) reach[of].terms.emplace_back(variables_[of].again, 1);
      for (const ModuleClass::Part& part : tree_.classes[of].parts)
        reach[size_t(part.of)].terms.emplace_back(variables_[of].open, -part.count);
    }
    auto& model = reach[size_t(tree_.modules[0].of)];
    model.least = model.most = 1;
    for (IntegerProgram::Row& row : reach) program_.rows.push_back(std::move(row));
  }

  // All that can be computed again at once.
  int64_t largest_savings() const {
    std::vector<int64_t> most(tree_.classes.size());
    for (size_t of = 0; of < most.size(); ++of) {
      for (const ModuleClass::Part& part : tree_.classes[of].parts)
        most[of] += part.count * most[size_t(part.of)];
      if (is_candidate(of)) most[of] = std::max(most[of], tree_.classes[of].saved);
    }
    return tree_.modules.empty() ? 0 : most[size_t(tree_.modules[0].of)];
  }

  const Solved& solved(size_t plan) const {
    std::optional<Solved>& one = solved_.at(plan);
    if (!one) one = plan == 0 ? Solved() : solve_for(savings_of(plan));
    return *one;
  }

  // What a plan has to save at least.
  int64_t savings_of(size_t plan) const {
    return most_ * static_cast<int64_t>(plan) / static_cast<int64_t>(solved_.size() - 1);
  }

  Solved solve_for(int64_t savings) const {
    IntegerProgram program = program_;
    program.rows[savings_row_].least = mebibytes(savings);
    const IntegerSolution solution = solve(program, std::max(*limits_.seconds / 2, kLeastSeconds));
    *limits_.seconds -= solution.seconds;
    Solved result;
    result.gap = solution.found ? solution.gap() : 1;
    for (size_t of = 0; of < tree_.classes.size(); ++of) {
      Choice& choice = result.choices.emplace_back();
      if (!solution.found || variables_[of].again < 0) continue;
      const ModuleClass& one = tree_.classes[of];
      choice.again = solution.values[size_t(variables_[of].again)];
      result.figures.saved += choice.again * one.saved;
      add(result.figures.cost, one.cost, choice.again);
      for (size_t group = 0; group < groups_[of].size(); ++group) {
        const OperatorCall& call = one.calls[size_t(groups_[of][group].front())];
        choice.kept.push_back(solution.values[size_t(variables_[of].kept[group])]);
        result.figures.saved -= choice.kept.back() * call.bytes;
        add(result.figures.cost, call.cost, -choice.kept.back());
      }
    }
    return result;
  }

  static void add(RecomputeCost& sum, const RecomputeCost& cost, int64_t times) {
    sum += {cost.flops * times, cost.seconds * static_cast<double>(times)};
  }
  static double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
  static constexpr double kUnlimited = 1e30;
  static constexpr double kLeastSeconds = 0.1;

  const ModuleTree& tree_;
  const OperatorPlanLimits limits_;
  const std::vector<int64_t> numbers_;  // of modules, per class
  const Weights weights_;
  IntegerProgram program_;
  std::vector<Variables> variables_;            // per class
  std::vector<std::vector<CallGroup>> groups_;  // per class; of candidates
  size_t savings_row_ = 0;
  int64_t most_ = 0;
  mutable std::vector<std::optional<Solved>> solved_;
};

// --- the baseline

class KnapsackPlans : public PlanSeries {
 public:
  KnapsackPlans(const ModuleTree& tree, size_t plans, bool by_flops)
      : tree_(tree), plans_(plans), by_flops_(by_flops) {
    for (size_t module = 0; module < tree.modules.size(); ++module) {
      const Module& one = tree.modules[module];
      if (one.list < 0 || tree.classes[size_t(one.of)].saved <= 0) continue;
      modules_.push_back(static_cast<int32_t>(module));
      all_.saved += class_of(modules_.back()).saved;
      all_.cost += class_of(modules_.back()).cost;
      for (size_t call = 0; call < class_of(modules_.back()).calls.size(); ++call)
        items_.push_back({modules_.back(), static_cast<int32_t>(call)});
    }
    for (const Item& item : items_) bytes_ += call_of(item).bytes;
    fill();
  }

  size_t size() const override { return modules_.empty() ? 1 : plans_; }
  PlanFigures figures(size_t plan) const override {
    if (plan == 0) return {};
    PlanFigures figures = all_;
    for (const Item& item : chosen(plan)) {
      figures.saved -= call_of(item).bytes;
      figures.cost += {-call_of(item).cost.flops, -call_of(item).cost.seconds};
    }
    return figures;
  }
  RecomputePlan plan(size_t plan) const override {
    if (plan == 0) return {};
    RecomputePlan regions = whole_modules(modules_);
    for (const Item& item : chosen(plan))
      std::ranges::find(regions, item.module, &PlannedRegion::first)->kept.push_back(item.call);
    for (PlannedRegion& region : regions) std::ranges::sort(region.kept);
    return regions;
  }

 private:
  struct Item {
    int32_t module, call;
  };
  static constexpr int kParts = 10'000;  // dp_knapsack's S

  const ModuleClass& class_of(int32_t module) const {
    return tree_.classes[size_t(tree_.modules[size_t(module)].of)];
  }
  const OperatorCall& call_of(const Item& item) const {
    return class_of(item.module).calls[size_t(item.call)];
  }
  int parts_of(const Item& item) const {
    return bytes_ == 0 ? 0
                       : static_cast<int>(std::lround(static_cast<double>(call_of(item).bytes) /
                                                      static_cast<double>(bytes_) * kParts));
  }

  void fill() {
    const Weights weights(by_flops_ ? RecomputeCost{all_.cost.flops, 0} : all_.cost);
    std::vector<double> best(kParts + 1);
    for (const Item& item : items_) {
      std::vector<bool>& takes = takes_.emplace_back(kParts + 1);
      const int parts = parts_of(item);
      const double work = weights.of(call_of(item).cost);
      for (int limit = kParts; limit >= parts; --limit) {
        if (best[size_t(limit - parts)] + work <= best[size_t(limit)]) continue;
        best[size_t(limit)] = best[size_t(limit - parts)] + work;
        takes[size_t(limit)] = true;
      }
    }
  }

  std::vector<Item> chosen(size_t plan) const {
    auto limit = static_cast<int>(kParts * (plans_ - 1 - plan) / (plans_ - 1));
    std::vector<Item> items;
    for (size_t i = items_.size(); i-- > 0;) {
      if (!takes_[i][size_t(limit)]) continue;
      items.push_back(items_[i]);
      limit -= parts_of(items_[i]);
    }
    return items;
  }

  const ModuleTree& tree_;
  const size_t plans_;
  const bool by_flops_;
  std::vector<int32_t> modules_;
  std::vector<Item> items_;
  int64_t bytes_ = 0;                     // of all items
  PlanFigures all_;                       // nothing is kept
  std::vector<std::vector<bool>> takes_;  // per item, by limit: the best choice has it
};

}  // namespace

std::unique_ptr<PlanSeries> operator_plans(const ModuleTree& tree, const OperatorPlanLimits& limits) {
  return std::make_unique<OperatorPlans>(tree, limits);
}

std::unique_ptr<PlanSeries> knapsack_plans(const ModuleTree& tree, size_t plans, bool by_flops) {
  return std::make_unique<KnapsackPlans>(tree, plans, by_flops);
}

}  // namespace metaprof
