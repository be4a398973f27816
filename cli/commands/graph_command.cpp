// metaprof graph: a model compiled as a graph, and what that would change.

#include <algorithm>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "core/error.h"
#include "estimate/compiled/graph_execution.h"
#include "reports/compiled/graph_execution_report.h"

namespace metaprof {
namespace {

constexpr const char* kGraphDescription =
    "A model compiled as a graph, beside eager execution.\n"
    "What every pass does, and a step's peak, saved bytes, FLOPs and kernels "
    "(docs/explanation/graph_executor.md).\n"
    "\n"
    "  metaprof graph model.pt2\n"
    "  metaprof graph model.pt2 --passes              the graph before and after every pass\n"
    "  metaprof graph model.pt2 --passes decompose,fuse_elementwise\n"
    "  metaprof graph model.pt2 --without fuse_elementwise --explain\n"
    "  metaprof graph model.pt2 --dot plan.dot --json -\n"
    "\n"
    "Exit status: 0 success, 2 bad usage or input.\n";

constexpr const char* kAllPasses = "all";

struct GraphWords {
  std::string model, json, dot, passes, without;
  bool explain = false, fallback = false;
  GraphExecutionOptions options;
};

// "a,b": names of passes, which there must be.
std::vector<std::string> passes_in(const std::string& list) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  check_passes(names);
  return names;
}

int show(const Command& command, const GraphWords& words) {
  if (command.was_given("--execution")) fail("--execution has no effect on graph, which runs both");
  const std::vector<std::string> without = passes_in(words.without);
  const std::vector<std::string> only =
      words.passes == kAllPasses ? std::vector<std::string>() : passes_in(words.passes);
  GraphExecutionOptions options = words.options;
  options.compile = {.disabled = {without.begin(), without.end()},
                     .keep_texts = !words.passes.empty(),
                     .optimise = !words.fallback};
  const Model model = read_model(words.model, options.run);
  RunOptions compiled = options.run;
  compiled.step.execution = Execution::graph;
  print_warnings(warnings_of(model, compiled));
  const GraphExecutionReport report = graph_execution(model, options);
  if (!words.json.empty()) write_result(words.json, graph_execution_json(report));
  if (!words.dot.empty()) write_result(words.dot, report.dot);
  if (words.json == "-" || words.dot == "-") return kFine;
  if (!words.passes.empty()) print_text(pass_texts(report, only));
  if (words.explain) print_text(report.explanation + "\n");
  print_text(graph_execution_text(report));
  return kFine;
}

}  // namespace

void add_graph_command(CommandLine& line) {
  Command command = line.add("graph", kGraphDescription);
  auto words = std::make_shared<GraphWords>();
  words->options.run.step.steps = 1;
  words->options.run.step.optimizer = "none";
  add_model(
      command, words->model,
      "a .pt2, a .pt of torch.jit.save, the name of a .pt2 (METAPROF_MODELS lists folders), or a program");
  add_run_options(command, words->options.run);
  take_environment(command);
  command.option("--passes", words->passes, "print the graph before and after every pass, or these passes")
      .value("[PASSES]")
      .value_if_given(kAllPasses);
  command.option("--without", words->without, "leave these passes out, with commas between them")
      .value("PASSES")
      .one_value();
  command.flag("--explain", words->explain, "print the graph, its plans, and those of its gradients");
  command.flag("--fallback", words->fallback, "do not compile: run the graph as it is");
  command.option("--dot", words->dot, "write the plan for Graphviz to FILE; -: to stdout").value("FILE");
  add_json(command, words->json);
  command.on_run([command, words] { return show(command, *words); });
}

}  // namespace metaprof
