// metaprof inspect: what weight files contain.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "estimate/weights.h"
#include "reports/catalog/weights_report.h"

namespace metaprof {
namespace {

constexpr const char* kInspectDescription =
    "What weight files contain (safetensors): parameters, dtypes, bytes, and whether a model has the same.\n"
    "\n"
    "  metaprof inspect model.safetensors\n"
    "  metaprof inspect path/to/folder                an index of several files, or a single file\n"
    "  metaprof inspect path/to/folder --tensors      a line for each tensor\n"
    "  metaprof inspect model.safetensors --against config.json\n"
    "\n"
    "Only headers are read. Without --against they are compared with the config.json and the exports\n"
    "in the same folder. A parameter with several names is stored if one of them is.\n"
    "\n"
    "Exit status: 0 success, 1 a model has other parameters, 2 bad usage or input.\n";

struct InspectWords {
  std::string path, against, json;
  bool tensors = false;
  int64_t width = 0;
};

int inspect(const InspectWords& words) {
  const WeightsReport report = inspect_weights(words.path, words.against);
  print_warnings(report.warnings);
  if (!words.json.empty()) write_result(words.json, weights_json(report));
  if (words.json != "-") print_text(weights_text(report, words.tensors, static_cast<size_t>(words.width)));
  for (const WeightsComparison& comparison : report.comparisons)
    if (!comparison.agrees()) return kFinding;
  return kFine;
}

}  // namespace

void add_inspect_command(CommandLine& line) {
  Command command = line.add("inspect", kInspectDescription);
  auto words = std::make_shared<InspectWords>();
  command.option("WEIGHTS", words->path, "a .safetensors, an index of several, or a folder")
      .value(" ")
      .required();
  command.option("--against", words->against, "the model to compare with").value("MODEL");
  command.flag("--tensors", words->tensors, "also a line for each tensor");
  add_json(command, words->json);
  add_width(command, words->width);
  command.on_run([words] { return inspect(*words); });
}

}  // namespace metaprof
