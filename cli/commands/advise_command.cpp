// metaprof advise: what helps a step to fit.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "estimate/search/advise.h"
#include "reports/sections/advice_report.h"

namespace metaprof {
namespace {

constexpr const char* kAdviseDescription =
    "Which switches make a step fit: each switch run, and the fewest that suffice together.\n"
    "\n"
    "  metaprof advise model.pt2 --device rtx4090\n"
    "  metaprof advise model.pt2 --device t4 --batch 8 --json - | jq .best\n"
    "\n"
    "Each figure is what `metaprof profile` gives with the same options.\n"
    "\n"
    "Exit status: 0 it fits or a switch makes it fit, 1 nothing makes it fit, 2 bad usage or input.\n";

struct AdviseWords {
  std::string model, json;
  RunOptions run;
  int64_t width = 0;
};

int advise(const AdviseWords& words) {
  const Model model = read_model(words.model, words.run);
  require_whole_step(model);
  print_warnings(warnings_of(model, words.run));
  const AdviceReport report = metaprof::advise(model, words.run);
  if (!words.json.empty()) write_result(words.json, advice_json(report));
  if (words.json != "-") print_text(advice_text(report, static_cast<size_t>(words.width)));
  return report.best.fits ? kFine : kFinding;
}

}  // namespace

void add_advise_command(CommandLine& line) {
  Command command = line.add("advise", kAdviseDescription);
  auto words = std::make_shared<AdviseWords>();
  add_model(command, words->model,
            "a .pt2, a .pt of torch.jit.save, or the name of a .pt2 (METAPROF_MODELS lists folders)");
  add_run_options(command, words->run);
  take_environment(command);
  add_json(command, words->json);
  add_width(command, words->width);
  command.on_run([words] { return advise(*words); });
}

}  // namespace metaprof
