// metaprof plan: what to compute again so that a step fits in a budget.

#include <algorithm>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "core/error.h"
#include "estimate/plan/plan.h"
#include "reports/plans/checkpoint_report.h"
#include "reports/plans/plan_curve.h"

namespace metaprof {
namespace {

constexpr const char* kPlanDescription =
    "What to recompute so that a training step stays within a budget.\n"
    "\n"
    "  metaprof plan model.pt2 --budget 24GiB\n"
    "  metaprof plan model.pt2 --budget 60%          of the peak without recomputation\n"
    "  metaprof plan model.pt2 --budget 8GiB --json - | jq -r '.checkpoint | join(\" \")'\n"
    "\n"
    "  metaprof plan model.pt2 --budget 8GiB --plan theirs.json    somebody else's plan, unchanged\n"
    "  metaprof plan model.pt2 --pareto --svg curve.svg            what each budget costs\n"
    "\n"
    "Every plan is run, so its figures are those of `metaprof profile --checkpoint`.\n"
    "The budget limits allocated bytes. The table also shows what the allocator reserves.\n"
    "\n"
    "Exit status: 0 a plan stays within the budget, 1 no plan does, 2 bad usage or input.\n";

struct PlanWords {
  std::string model, json, python, costs, svg, html;
  PlanOptions options;
};

void write_files(const PlanWords& words, const CheckpointReport& report) {
  if (!words.json.empty()) write_result(words.json, checkpoint_json(report));
  if (!words.python.empty()) write_result(words.python, checkpoint_python(report));
  if (!words.costs.empty()) write_result(words.costs, plan_costs_json(report));
  if (!words.svg.empty()) write_result(words.svg, plan_curve_svg(report));
  if (!words.html.empty()) write_result(words.html, plan_curve_html(report));
}

std::string text_of(const CheckpointReport& report) {
  if (!report.has_budget) return plan_curve_text(report);
  return checkpoint_text(report) + (report.curve.empty() ? "" : "\n" + plan_curve_text(report));
}

int plan(PlanWords words) {
  PlanOptions& options = words.options;
  options.costs = !words.costs.empty();
  for (const auto& [option, file] : {std::pair("--svg", words.svg), std::pair("--html", words.html)})
    if (!file.empty() && !options.curve) fail("{} shows the curve of --pareto: give --pareto, too", option);
  const Model model = read_model(words.model, words.options.run);
  require_whole_step(model);
  print_warnings(warnings_of(model, words.options.run));
  const CheckpointReport report = metaprof::plan(model, words.options);
  print_notes(report.notes);
  write_files(words, report);
  const std::string* const files[] = {&words.json, &words.python, &words.costs, &words.svg, &words.html};
  if (std::ranges::none_of(files, [](const std::string* file) { return *file == "-"; }))
    print_text(text_of(report));
  if (!report.has_budget) return kFine;
  return report.best().holds ? kFine : kFinding;
}

}  // namespace

void add_plan_command(CommandLine& line) {
  Command command = line.add("plan", kPlanDescription);
  auto words = std::make_shared<PlanWords>();
  add_model(command, words->model,
            "a .pt2, a .pt of torch.jit.save, or the name of a .pt2 (METAPROF_MODELS lists folders)");
  command
      .option("--strategy", words->options.strategies,
              "modules, chain, operators, offload, or the baselines rotor, square-root, knapsack; or all "
              "[modules,chain,operators]")
      .value("WORDS")
      .separated_by(',');
  command.option("--budget", words->options.budget, "bytes that the step may allocate, as 24GiB or 60%")
      .value("SIZE");
  command
      .option("--python", words->python,
              "write the plan as a Python file with apply_plan(model); -: to stdout, instead of the text")
      .value("FILE");
  command
      .option("--plan", words->options.files,
              "run others' plans: {\"strategy\": NAME, \"checkpoint\": [PATTERN…]}, or what --json wrote; "
              "with --strategy, ours too")
      .value("FILE")
      .one_value();
  command.flag("--pareto", words->options.curve,
               "show what each budget costs, down to the smallest that a plan reaches");
  command.option("--svg", words->svg, "draw the curve of --pareto").value("FILE");
  command.option("--html", words->html, "write the curve of --pareto as a page").value("FILE");
  command.option("--costs", words->costs, "write the input of the strategies, by class of modules, as JSON")
      .value("FILE");
  add_run_options(command, words->options.run);
  take_environment(command);
  add_json(command, words->json);
  command.on_run([words] { return plan(*words); });
}

}  // namespace metaprof
