// metaprof cudagraphs: what CUDA graphs would cost a training step, and whether it can be captured.

#include <iostream>
#include <memory>

#include "cli/console.h"
#include "cli/metaprof.h"
#include "cli/run_options.h"
#include "estimate/cudagraphs.h"

namespace metaprof {
namespace {

constexpr const char* kDescription =
    "What CUDA graphs would cost a training step: memory in and outside the graphs' pools, copies and "
    "launches\n"
    "per step (docs/cudagraphs.md).\n"
    "\n"
    "  metaprof cudagraphs model.pt2                    the whole step as one graph\n"
    "  metaprof cudagraphs model.pt2 --whole-network --warmup 3 --json -\n"
    "\n"
    "Exit status: 0 fine, 2 bad usage or input.\n";

struct Words {
  std::string model, json;
  bool whole_network = false;
  CudagraphsOptions options;
};

int show(const Words& words) {
  const Model model = read_model(words.model);
  print_notes(warnings_of(model));
  const CudagraphsReport report = cudagraphs(model, words.options);
  print_notes(report.notes);
  if (!words.json.empty()) write_result(words.json, cudagraphs_json(report));
  if (words.json != "-") std::cout << cudagraphs_text(report);
  return kFine;
}

}  // namespace

void add_cudagraphs_command(CommandLine& line) {
  Command command = line.add("cudagraphs", kDescription);
  auto words = std::make_shared<Words>();
  // An optimizer whose step the framework captures; AdamW counts its steps on the host.
  words->options.run.step.optimizer = "sgd-momentum";
  add_model(command, words->model, "a .pt2, the name of one (METAPROF_MODELS lists folders), or a program");
  add_run_options(command, words->options.run);
  command.flag("--whole-network", words->whole_network, "the whole step as one graph");
  command.option("--warmup", words->options.warmup, "steps before the whole step is captured")
      .value("N")
      .from_to(0, 1000)
      .with_default();
  add_json(command, words->json);
  command.on_run([words] { return show(*words); });
}

}  // namespace metaprof
