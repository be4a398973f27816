// metaprof profile: runs the steps of a model on a described device and reports what they cost.

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "core/error.h"
#include "estimate/compiled/graph_execution.h"
#include "estimate/epoch/epoch.h"
#include "estimate/least_memory.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/source_lines.h"
#include "estimate/search/advise.h"
#include "meta/trace/text.h"
#include "program/text/text.h"
#include "reports/profile/profile_report.h"
#include "reports/report_forms.h"
#include "reports/sections/advice_report.h"
#include "reports/sections/peak_contributors.h"

namespace metaprof {
namespace {

constexpr const char* kProfileDescription =
    "What training steps of a model cost.\n"
    "\n"
    "  metaprof profile model.pt2\n"
    "  metaprof profile model.pt2 --device a100 --precision amp-bf16 --optimizer adamw --steps 3\n"
    "  metaprof profile model.pt2 --memory 24GiB --depth 2 --sort saved\n"
    "  metaprof profile model.pt2 --json - | jq .peak\n"
    "  metaprof profile model.pt2 --html page.html --chrome-trace step.json --snapshot step.pickle\n"
    "  metaprof profile model.pt2 --execution graph   compiled as a graph, beside eager\n"
    "  metaprof profile model.pt2 --per-node --top 20 --sort fwd_mem_out\n"
    "  metaprof profile scripted.pt --input 'x=f32[8,3,224,224]'   a model of torch.jit.save\n"
    "  metaprof profile timm:vit_base_patch16_224 --batch 32       a module that your Python has\n"
    "  metaprof profile gpt2 --batch 8 --lengths lengths.txt     a whole epoch\n"
    "  metaprof profile model.pt2 --write-trace step.trace; metaprof profile step.trace\n"
    "  metaprof profile model.pt2 --write-program model.mp; metaprof profile model.mp --precision bf16\n"
    "\n"
    "MODEL is a .pt2 that torch.export.save wrote, a .pt of torch.jit.save, a config.json of Hugging Face or "
    "its folder, the text of "
    "a program (*.mp) or of a trace (*.trace).\n"
    "Modules of your own Python: timm:resnet50, torchvision:swin_t, transformers:bert-base (a Hub name, or a "
    "folder with a\n"
    "config.json), or model.py:make. A function returns (module, inputs), or calls backward() itself.\n"
    "Exit status: 0 it fits, 1 it does not fit, 2 bad usage or input.\n";

struct ProfileOptions {
  std::string model;
  RunOptions run;
  EpochOptions epoch;
  std::vector<std::string> files;  // of report_forms(), in its order; empty: not asked for
  bool per_node = false, markdown = false;
  std::string granularity = "module", write_trace, write_program, compare;
  TextOptions text;
  int64_t width = 0;
  std::string color;
};

// The form that goes to stdout in place of the text; null: none.
const ReportForm* form_on_stdout(const ProfileOptions& options) {
  const ReportForm* first = nullptr;
  for (size_t i = 0; i < options.files.size(); ++i) {
    if (options.files[i] != "-") continue;
    const ReportForm* form = &report_forms()[i];
    if (first) fail("{} and {} cannot both go to stdout", option_of(*first), option_of(*form));
    first = form;
  }
  return first;
}

template <class Predicate>  // bool(const ReportForm&)
bool any_form(const ProfileOptions& options, Predicate predicate) {
  for (size_t i = 0; i < options.files.size(); ++i)
    if (!options.files[i].empty() && predicate(report_forms()[i])) return true;
  return false;
}

// Further steps than those that differ are dispatched where somebody looks at them.
StepsToRun steps_to_run(const ProfileOptions& options) {
  if (!options.write_trace.empty()) return StepsToRun::all;
  const bool all = any_form(options, [](const ReportForm& form) { return form.steps == StepsToRun::all; });
  return all ? StepsToRun::all : StepsToRun::until_alike;
}

void write_forms(const ProfileOptions& options, ReportInputs& inputs) {
  for (size_t i = 0; i < options.files.size(); ++i) {
    inputs.file = options.files[i];
    if (!inputs.file.empty()) write_result(inputs.file, report_forms()[i].make(inputs));
  }
}

// What helps a step that does not fit; each switch that there is, where a form shows them.
void add_advice(Estimate& result, const Model& model, const ProfileOptions& options) {
  ProfileReport& report = result.report;
  const bool all = any_form(options, [](const ReportForm& form) { return form.shows_advice; });
  RunOptions shown = options.run;
  shown.step.condition = result.options.step.condition;  // of what follows from data: as in the report
  shown.step.trips = result.options.step.trips;
  const AdviceReport advice = all ? advise(model, shown) : find_fix(model, shown, result);
  report.fix = cheapest_fix(advice);
  report.advice = {advice.base};
  report.advice.insert(report.advice.end(), advice.rows.begin(), advice.rows.end());
  const bool is_a_row = std::ranges::any_of(
      report.advice, [&](const AdviceRow& row) { return row.changes == advice.best.changes; });
  if (!is_a_row) report.advice.push_back(advice.best);
}

Estimate estimate_of(const Model& model, const ProfileOptions& options) {
  if (!options.epoch.asked()) return estimate(model, options.run, steps_to_run(options));
  WorkspacePlanners planners;
  return estimate_epoch(model, options.run, options.epoch, planners, steps_to_run(options),
                        EpochChanges::tried);
}

int profile(const Command& command, const ProfileOptions& options) {
  check_epoch_options(command, options.epoch);
  check_columns(options.text, options.per_node);
  const ReportForm* const on_stdout = form_on_stdout(options);
  if (!options.compare.empty() && !command.was_given("--html"))
    fail(
        "--compare needs the page of --html: give --html FILE, too; metaprof diff compares two reports as "
        "text");
  (void)device_of(options.run);
  if (!options.run.framework.empty()) (void)framework_given(options.run);
  const Model model = read_model(options.model, options.run);
  require_whole_step(model);
  const std::vector<std::string> warnings = warnings_of(model, options.run);
  print_warnings(warnings);
  if (model.is_trace()) {
    refuse_step_options(command, "has no effect on a trace, whose steps are fixed");
    if (command.was_given("--workspaces"))
      fail("--workspaces has no effect on a trace, which has its own workspaces");
    if (!options.write_program.empty()) fail("--write-program: a trace has no program");
  }
  if (!options.write_program.empty())
    write_result(options.write_program, to_text(with_inputs(model, options.run)));
  Estimate result = estimate_of(model, options);
  result.report.warnings = warnings;
  if (options.run.step.execution == Execution::graph && !model.is_trace())
    result.report.execution = {.eager = eager_figures(model, options.run),
                               .graph = execution_figures(result.report),
                               .scope = *result.report.graph};
  if (!options.write_trace.empty()) write_result(options.write_trace, to_text(result.trace));

  if (!options.epoch.asked()) result.report.runs_from = least_memory(result);
  if (!verdict_of(result.report).fits && !model.is_trace() && !options.epoch.asked())
    add_advice(result, model, options);
  TextOptions text = options.text;
  text.width = static_cast<size_t>(options.width);
  text.colour = colour_on_stdout(options.color);
  ReportInputs inputs(result, text);
  if (!model.is_trace()) inputs.lines = source_lines(model.program);
  inputs.compare = options.compare;
  if (options.per_node) inputs.with_nodes(options.granularity);
  write_forms(options, inputs);
  ProfileReport& report = result.report;
  if (on_stdout) {
    print_note(workspace_note(report.workspaces));
  } else {
    if (!options.per_node) report.nodes.reset();
    if (!options.markdown)
      report.peak_contributors = peak_contributors_of(report.memory.peak.largest, inputs.lines);
    print_text(options.markdown ? profile_markdown(report, text) : profile_text(report, text), text.colour);
  }
  return verdict_of(report).fits ? kFine : kFinding;
}

void add_report_options(Command& command, ProfileOptions& options) {
  constexpr const char* kGroup = "The report";
  const auto add = [&](const std::string& name, const char* argument, auto& value, const std::string& what) {
    return command.option(name, value, what).value(argument).group(kGroup).one_value();
  };
  options.files.resize(report_forms().size());
  for (size_t i = 0; i < report_forms().size(); ++i)
    add(option_of(report_forms()[i]), "FILE", options.files[i], std::string(report_forms()[i].what));
  add("--compare", "FILE", options.compare,
      "show the run beside another report (JSON of profile) on the page of --html");
  command.flag("--markdown", options.markdown, "print Markdown instead of the text").group(kGroup);
  command.flag("--per-node", options.per_node, "a table of nodes (calls) instead of modules").group(kGroup);
  add("--granularity", "WORD", options.granularity, "kind of nodes: module, function or operator")
      .one_of({"module", "function", "operator"})
      .with_default();
  add("--write-trace", "FILE", options.write_trace, "write the run's events as text to FILE");
  add("--write-program", "FILE", options.write_program,
      "write the model's calls as text to FILE (docs/reference/program.md)");
  add("--depth", "N", options.text.depth, "levels of the tree of modules to show; -1: all").with_default();
  add("--sort", "COLUMN", options.text.sort,
      "sort by this column, the largest first; modules are sorted among siblings");
  add("--top", "N", options.text.top, "only the N largest rows of all levels").from_to(1, 1000000);
  add("--columns", "LIST", options.text.columns,
      fmt::format("columns to show: {}; with --per-node: {}", fmt::join(module_column_names(), ","),
                  fmt::join(node_column_names(), ",")))
      .separated_by(',');
}

}  // namespace

void add_profile_command(CommandLine& line) {
  Command command = line.add("profile", kProfileDescription);
  auto options = std::make_shared<ProfileOptions>();
  add_model(command, options->model, "a .pt2, a .pt of torch.jit.save, a name, a program or a trace");
  add_run_options(command, options->run);
  add_epoch_options(command, options->epoch);
  take_environment(command);
  add_report_options(command, *options);
  add_width(command, options->width);
  add_color(command, options->color);
  command.on_run([command, options] { return profile(command, *options); });
}

}  // namespace metaprof
