// metaprof plan: what to compute again so that a step fits in a budget.

#include <iostream>
#include <memory>

#include "cli/console.h"
#include "cli/metaprof.h"
#include "cli/run_options.h"
#include "estimate/plan.h"

namespace metaprof {
namespace {

constexpr const char* kPlanDescription =
    "What to compute again so that a training step fits in a budget.\n"
    "\n"
    "  metaprof plan model.pt2 --budget 24GiB\n"
    "  metaprof plan model.pt2 --budget 60%          of the peak without recomputation\n"
    "  metaprof plan model.pt2 --budget 8GiB --json - | jq -r '.checkpoint | join(\" \")'\n"
    "\n"
    "The step is run with every plan, so its figures are those of `metaprof profile --checkpoint`. The "
    "budget is\n"
    "one of allocated bytes; what the allocator reserves for them is shown beside it.\n"
    "\n"
    "Exit status: 0 the plan holds, 1 none does, 2 bad usage or input.\n";

struct PlanWords {
  std::string model, json;
  PlanOptions options;
};

int plan(const PlanWords& words) {
  const Model model = read_model(words.model, words.options.run);
  print_notes(warnings_of(model, words.options.run));
  const CheckpointReport report = metaprof::plan(model, words.options);
  print_notes(report.notes);
  if (!words.json.empty()) write_result(words.json, checkpoint_json(report));
  if (words.json != "-") std::cout << checkpoint_text(report);
  return report.best().holds ? kFine : kFinding;
}

}  // namespace

void add_plan_command(CommandLine& line) {
  Command command = line.add("plan", kPlanDescription);
  auto words = std::make_shared<PlanWords>();
  add_model(command, words->model, "a .pt2, or the name of one (METAPROF_MODELS lists folders)");
  command
      .option(
          "--strategy", words->options.strategies,
          "modules, chain, operators, or the baselines square-root, knapsack; all [modules,chain,operators]")
      .value("WORDS")
      .separated_by(',');
  command.option("--budget", words->options.budget, "bytes that the step may allocate, as 24GiB or 60%")
      .value("SIZE");
  add_run_options(command, words->options.run);
  take_environment(command);
  add_json(command, words->json);
  command.on_run([words] { return plan(*words); });
}

}  // namespace metaprof
