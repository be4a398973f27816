// metaprof cudagraphs: what CUDA graphs would cost a training step, and whether it can be captured.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "estimate/compiled/cudagraphs.h"
#include "reports/compiled/cudagraphs_report.h"

namespace metaprof {
namespace {

constexpr const char* kDescription =
    "Whether CUDA graphs can capture a training step, and what that costs.\n"
    "Costs are memory in and outside their pools, and copies and launches per step\n"
    "(docs/explanation/cudagraphs.md).\n"
    "\n"
    "  metaprof cudagraphs model.pt2                    verdicts, the whole step as one graph, a tree of "
    "graphs\n"
    "  metaprof cudagraphs model.pt2 --whole-network --warmup 3 --json -\n"
    "  metaprof cudagraphs model.pt2 --require          for a job: exit status 1 if a graph would be "
    "skipped\n"
    "  metaprof cudagraphs model.pt2 --tree --dot tree.dot\n"
    "\n"
    "Exit status: 0 success, 1 if a step ends with the framework's error, or with --require if a graph would "
    "be\n"
    "skipped, 2 bad usage or input.\n";

struct Words {
  std::string model, json, dot;
  bool whole_network = false, tree = false, graphed_callables = false, require = false;
  CudagraphsOptions options;
};

int show(Words words) {
  const bool one = words.whole_network || words.tree || words.graphed_callables;
  words.options.graphed_callables = words.graphed_callables;
  words.options.whole_network = words.whole_network || (!one && can_capture_whole_step(words.options.run));
  words.options.tree = words.tree || !one;
  words.options.tree_steps = words.options.run.step.steps;
  const Model model = read_model(words.model, words.options.run);
  print_warnings(warnings_of(model, words.options.run));
  const CudagraphsReport report = cudagraphs(model, words.options);
  print_notes(report.notes);
  if (!words.json.empty()) write_result(words.json, cudagraphs_json(report));
  if (!words.dot.empty()) write_result(words.dot, cudagraphs_dot(report));
  if (words.json != "-" && words.dot != "-") print_text(cudagraphs_text(report));
  if (!report.steps_end_well()) return kFinding;
  return words.require && !report.all_captured() ? kFinding : kFine;
}

}  // namespace

void add_cudagraphs_command(CommandLine& line) {
  Command command = line.add("cudagraphs", kDescription);
  auto words = std::make_shared<Words>();
  // An optimizer whose step the framework captures; AdamW counts its steps on the host.
  words->options.run.step.optimizer = "sgd-momentum";
  words->options.run.step.steps = 4;  // of a tree: one to warm up, one to record, replays
  add_model(
      command, words->model,
      "a .pt2, a .pt of torch.jit.save, the name of a .pt2 (METAPROF_MODELS lists folders), or a program");
  add_run_options(command, words->options.run);
  take_environment(command);
  command.flag("--whole-network", words->whole_network, "the whole step as one graph");
  command.option("--warmup", words->options.warmup, "steps before the whole step is captured")
      .value("N")
      .from_to(0, 1000)
      .with_default();
  command.flag("--graphed-callables", words->graphed_callables,
               "forward and backward by make_graphed_callables, then --steps steps");
  command.flag("--tree", words->tree, "forward and backward as a tree of graphs, for --steps steps");
  command.flag("--skip-dynamic-sizes", words->options.policy.skip_dynamic_sizes,
               "capture nothing if sizes change, instead of a graph for each size");
  command.flag("--require", words->require, "exit status 1 if a graph would be skipped");
  command.option("--dot", words->dot, "write the tree for Graphviz").value("FILE");
  add_json(command, words->json);
  command.on_run([words] { return show(*words); });
}

}  // namespace metaprof
