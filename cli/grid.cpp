#include "cli/grid.h"

#include "core/error.h"

namespace metaprof {
namespace {

constexpr size_t kMostCombinations = 100'000;

template <class T>
void add_list(CLI::App& command, const char* name, std::vector<T>& values, const char* argument,
              const char* what) {
  command.add_option(name, values, what)->delimiter(',')->option_text(argument)->group("The grid");
}

// Every combination so far, once for each value.
template <class T, class Set>  // Set(ProfileOptions&, value)
void multiply(std::vector<ProfileOptions>& runs, const std::vector<T>& values, Set set) {
  if (values.empty()) return;
  if (runs.size() * values.size() > kMostCombinations)
    fail("more than {} combinations; leave some values out", kMostCombinations);
  std::vector<ProfileOptions> more;
  for (const ProfileOptions& run : runs)
    for (const T& value : values) set(more.emplace_back(run), value);
  runs = std::move(more);
}

}  // namespace

void add_grid_options(CLI::App& command, Grid& grid) {
  command.add_option("MODEL", grid.model, "a .pt2")->option_text(" ")->required();
  add_list(command, "--device", grid.device, "NAME,…", "h200, h100, a100, l40s, rtx4090, t4, FILE.json");
  add_list(command, "--precision", grid.precision, "WORD,…", "fp32, bf16, fp16, amp-bf16, amp-fp16");
  add_list(command, "--optimizer", grid.optimizer, "WORD,…", "none, sgd, adamw …");
  add_list(command, "--optimizer-impl", grid.optimizer_impl, "WORD,…", "default, foreach, for-loop, fused");
  add_list(command, "--sequence", grid.sequence, "N,…", "sequence lengths");
  add_list(command, "--accumulate", grid.accumulate, "N,…", "micro-batches of a step");
  add_list(command, "--checkpoint", grid.checkpoint, "GLOB,…", "modules to recompute in backward; none");
  ProfileOptions& common = grid.common;
  const auto add = [&](const char* name, auto& value, const char* argument, const char* what) {
    return command.add_option(name, value, what)->option_text(argument)->group("All runs");
  };
  add("--steps", common.step.steps, "N", "training steps in a row")->check(CLI::Range(1, 1000));
  add("--mode", common.step.mode, "WORD", "train, eval, no-grad or inference");
  add("--memory", common.memory, "SIZE", "memory of the device, as 24GiB");
  add("--alloc-conf", common.alloc_conf, "TEXT", "as PYTORCH_ALLOC_CONF");
  add("--env", common.environment, "NAME=VALUE", "environment of the process");
  add("--workspaces", common.workspaces, "WORD", "none, auto or FILE");
  add("--set", common.settings, "NAME=TEXT", "shape (4x512) or value of an input");
  command.add_flag("--channels-last", common.step.channels_last, "parameters and inputs in channels_last")
      ->group("All runs");
  command.add_flag("--checkpoint-reentrant", common.step.checkpoint_reentrant, "by the reentrant method")
      ->group("All runs");
}

std::vector<ProfileOptions> combinations(const Grid& grid) {
  std::vector<ProfileOptions> runs{grid.common};
  runs[0].model = grid.model;
  multiply(runs, grid.device, [](ProfileOptions& run, const std::string& v) { run.device = v; });
  multiply(runs, grid.precision, [](ProfileOptions& run, const std::string& v) { run.step.precision = v; });
  multiply(runs, grid.optimizer, [](ProfileOptions& run, const std::string& v) { run.step.optimizer = v; });
  multiply(runs, grid.optimizer_impl,
           [](ProfileOptions& run, const std::string& v) { run.step.optimizer_impl = v; });
  multiply(runs, grid.checkpoint,
           [](ProfileOptions& run, const std::string& v) { run.step.checkpoint = v == "none" ? "" : v; });
  multiply(runs, grid.accumulate, [](ProfileOptions& run, int v) { run.step.accumulate = v; });
  multiply(runs, grid.sequence, [](ProfileOptions& run, int v) { run.sequence = v; });
  multiply(runs, grid.batch, [](ProfileOptions& run, int v) { run.batch = v; });
  return runs;
}

}  // namespace metaprof
