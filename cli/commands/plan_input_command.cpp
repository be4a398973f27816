// metaprof plan-input: a model as planners of activation checkpointing want it.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "core/error.h"
#include "estimate/plan/plan_report.h"
#include "reports/plans/plan_records.h"

namespace metaprof {
namespace {

constexpr const char* kPlanInputDescription =
    "A model as records for planners of activation checkpointing (docs/how_to/planners.md).\n"
    "\n"
    "  metaprof plan-input model.pt2 --format rotor | jq '.stages | length'\n"
    "  metaprof plan-input model.pt2 --format checkmate --precision amp-bf16 --output graph.json\n"
    "  metaprof plan-input model.pt2 --format csv > allocations.csv\n"
    "\n"
    "Formats: rotor (a chain of stages), checkmate (a graph with backward nodes), sac (module statistics),\n"
    "knapsack (normalized lists), csv (lifetimes of allocations), json (everything).\n"
    "Exit status: 0 success, 2 bad usage or input.\n";

struct PlanInputOptions {
  std::string model;
  RunOptions run;
  std::string format = "json", output = "-";
};

int plan_input(const Command& command, const PlanInputOptions& options) {
  const Model model = read_model(options.model, options.run);
  print_warnings(warnings_of(model, options.run));
  if (model.is_trace()) refuse_step_options(command, "has no effect on a trace, whose steps are fixed");
  const Estimate result = estimate(model, options.run);
  print_note(workspace_note(result.report.workspaces));
  write_result(options.output, plan_record(plan_report(result), options.format));
  return kFine;
}

}  // namespace

void add_plan_input_command(CommandLine& line) {
  Command command = line.add("plan-input", kPlanInputDescription);
  auto options = std::make_shared<PlanInputOptions>();
  options->run.step.steps = 1;
  options->run.step.optimizer = "none";
  add_model(
      command, options->model,
      "a .pt2, a .pt of torch.jit.save, the name of a .pt2 (METAPROF_MODELS lists folders), or a trace");
  add_run_options(command, options->run);
  take_environment(command);
  command.option("--format", options->format, "rotor, checkmate, sac, knapsack, csv or json")
      .value("WORD")
      .one_of(plan_formats())
      .with_default();
  command.option("--output,--json", options->output, "write to FILE; -: to stdout")
      .value("FILE")
      .with_default();
  command.on_run([command, options] { return plan_input(command, *options); });
}

}  // namespace metaprof
