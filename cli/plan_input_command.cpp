// metaprof plan-input: a model as planners of activation checkpointing want it.

#include <memory>

#include "cli/console.h"
#include "cli/estimate.h"
#include "cli/metaprof.h"
#include "reports/plan_records.h"

namespace metaprof {
namespace {

constexpr const char* kDescription =
    "A model as planners of activation checkpointing read it (docs/planners.md).\n"
    "\n"
    "  metaprof plan-input model.pt2 --format rotor | jq '.stages | length'\n"
    "  metaprof plan-input model.pt2 --format checkmate --precision amp-bf16 --output graph.json\n"
    "  metaprof plan-input model.pt2 --format csv > allocations.csv\n"
    "\n"
    "Formats: rotor (a chain of stages), checkmate (a graph with backward nodes), sac (module statistics),\n"
    "knapsack (normalised lists), csv (lives of allocations), json (everything).\n"
    "Exit status: 0 fine, 2 bad usage or input.\n";

struct PlanOptions {
  ProfileOptions run;
  std::string format = "json", output = "-";
};

int plan(const CLI::App& command, const PlanOptions& options) {
  const DeviceProfile device = device_of(options.run);
  ProfileReport report;
  const Trace trace = trace_of(command, options.run, device, report);
  PlanReport plan;
  plan.model = report.model;
  plan.device = device.name;
  const std::string& root = report.module_types[""];
  plan.root_type = root.empty() ? "model" : root.substr(root.rfind('.') + 1);
  plan.input = plan_input(trace, device.type, rates_of(device));
  write_result(options.output, plan_record(plan, options.format));
  return kFine;
}

}  // namespace

void add_plan_input_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("plan-input", kDescription);
  auto options = std::make_shared<PlanOptions>();
  options->run.step.steps = 1;
  options->run.step.optimizer = "none";
  add_run_options(*command, options->run);
  command->add_option("--format", options->format, "rotor, checkmate, sac, knapsack, csv or json")
      ->option_text("WORD")
      ->check(CLI::IsMember(plan_formats()))
      ->capture_default_str();
  command->add_option("--output,--json", options->output, "write to FILE; -: to stdout")
      ->option_text("FILE")
      ->capture_default_str();
  command->callback([command, options, &exit_code] { exit_code = plan(*command, *options); });
}

}  // namespace metaprof
