#include "estimate/prepare/run_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>

namespace metaprof {
namespace {

// All other options may change what is dispatched. The memory of a device does not: nothing asks for it but the
// allocator. What else a device changes is asked (meta/session/questions.h).
constexpr std::string_view kAfterDispatch[] = {"optimizer",  "optimizer_impl", "device", "memory",
                                               "alloc_conf", "context",        "margin"};

std::vector<const RunOption*> deciding_options() {
  std::vector<const RunOption*> options;
  for (const RunOption& option : run_options())
    if (std::ranges::find(kAfterDispatch, option.name) == std::end(kAfterDispatch))
      options.push_back(&option);
  return options;
}

}  // namespace

std::string inputs_asked_by(const RunOptions& run) {
  std::string key;
  for (const RunOption& option : run_options())
    if (option.group == RunOption::Group::inputs || option.group == RunOption::Group::model)
      key += to_text(option.value(run)) + '\n';
  // Adapters and weights of few bits convert under autocast and not without it.
  if (!run.lora.empty() || !run.base_weights.empty()) key += to_string(run.step.precision);
  // A script branches by whether it trains and records gradients, and by what tensors say.
  if (!run.inputs.empty()) key += fmt::format("{} {}", to_string(run.step.mode), run.step.condition);
  return key;
}

std::string options_of_dispatch(const RunOptions& run) {
  static const std::vector<const RunOption*> kDeciding = deciding_options();
  std::string key = run.step.optimizer == "none" ? "none" : "";
  for (const RunOption* option : kDeciding) key += '\n' + to_text(option->value(run));
  return key;
}

std::vector<RunGroup> group_runs(const std::vector<RunOptions>& runs) {
  std::vector<RunGroup> groups;
  std::unordered_map<std::string, size_t> group_of;  // by the values of those options
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto [found, is_new] = group_of.try_emplace(options_of_dispatch(runs[i]), groups.size());
    if (is_new) groups.emplace_back();
    RunGroup& group = groups[found->second];
    const OptimizerChoice choice{runs[i].step.optimizer, runs[i].step.optimizer_impl};
    if (std::ranges::find(group.optimizers, choice) == group.optimizers.end())
      group.optimizers.push_back(choice);
    group.runs.push_back(i);
  }
  std::ranges::stable_sort(groups, {},
                           [&](const RunGroup& group) { return inputs_asked_by(runs[group.runs[0]]); });
  return groups;
}

}  // namespace metaprof
