#include "estimate/plan/fitting_plan.h"

namespace metaprof {
namespace {

// What the allocator reserves beyond what is allocated is mostly less than a fifth: budgets in steps of a twentieth.
constexpr int kBudgets = 5, kPartsOfMemory = 20;

std::optional<TriedPlan> found_with(PlanSearch& search, const std::string& strategy, Bytes memory,
                                    const FitsWith& fits) {
  for (int less = 0; less < kBudgets; ++less) {
    const Bytes budget{memory.count / kPartsOfMemory * (kPartsOfMemory - less)};
    TriedPlan found = search.find(strategy, budget);
    if (found.figures.allocated > budget) return std::nullopt;
    if (fits(found.words)) return found;
  }
  return std::nullopt;
}

double share_of(const StepFigures& with, const StepFigures& plain) {
  const auto flops = static_cast<double>(plain.flops.count);
  return flops > 0 ? static_cast<double>(with.again.flops) / flops : 0;
}

}  // namespace

double recomputed_share(const Model& model, const RunOptions& run, const std::vector<std::string>& words) {
  StepRunner runner(model, run);
  return share_of(runner.run(words), runner.run({}));
}

std::optional<FittingPlan> fitting_plan(const Model& model, const RunOptions& run,
                                        const std::vector<std::string>& strategies, Bytes memory,
                                        const FitsWith& fits) {
  StepRunner runner(model, run);
  const StepFigures plain = runner.run({});
  if (plain.elsewhere > memory) return std::nullopt;
  PlanSearch search(runner, plain);
  std::optional<TriedPlan> best;
  for (const std::string& strategy : strategies) {
    std::optional<TriedPlan> found = found_with(search, strategy, memory, fits);
    if (found && (!best || found->figures.again < best->figures.again)) best = std::move(found);
  }
  if (!best) return std::nullopt;
  return FittingPlan{.words = best->words, .recomputed = share_of(best->figures, plain)};
}

}  // namespace metaprof
