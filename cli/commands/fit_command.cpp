// metaprof fit: the largest batch, or the longest sequence, of which a training step fits.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "estimate/search/fit.h"
#include "reports/search/grid_report.h"

namespace metaprof {
namespace {

constexpr const char* kFitDescription =
    "The largest batch, or the longest sequence, that fits.\n"
    "\n"
    "  metaprof fit model.pt2 --device rtx4090\n"
    "  metaprof fit llama-3.1-8b --device all --precision bf16\n"
    "  metaprof fit model.pt2 --device a100,h100 --precision fp32,amp-bf16 --optimizer sgd,adamw\n"
    "  metaprof fit gpt2.pt2 --device l40s --sequence 256,512,1024\n"
    "  metaprof fit gpt2.pt2 --device l40s --find sequence --batch 1\n"
    "  metaprof fit gpt2 --lengths lengths.txt                    with which a whole epoch runs\n"
    "  metaprof fit gpt2.pt2 --device rtx4090 --plan              with the best recomputation plan\n"
    "\n"
    "Memory of the CUDA context (--context) is not available to the step. --margin leaves more free.\n"
    "\n"
    "Exit status: 0 each row has a size that fits, 1 in some row not even 1 fits, 2 bad usage or input.\n";

struct FitWords {
  std::string model, json;
  FitOptions options;
  int64_t width = 0;
};

int fit(const Command& command, const FitWords& words) {
  check_epoch_options(command, words.options.epoch);
  const FitOptions& options = words.options;
  check_fit_options(options);
  const Model model = read_model_for(options.grid, words.model);
  require_whole_step(model);
  const std::vector<std::string> warnings = warnings_of(model, options.grid.common);
  print_warnings(warnings);
  FitReport report = [&] {
    ProgressLine line("fit:");
    return metaprof::fit(model, options, [&](size_t done, size_t all) { line.tell(done, all); });
  }();
  print_notes(report.notes);
  report.notes.insert(report.notes.begin(), warnings.begin(), warnings.end());
  if (!words.json.empty()) write_result(words.json, fit_json(report));
  if (words.json != "-") print_text(fit_text(report, static_cast<size_t>(words.width)));
  return report.all_fit() ? kFine : kFinding;
}

}  // namespace

void add_fit_command(CommandLine& line) {
  Command command = line.add("fit", kFitDescription);
  auto words = std::make_shared<FitWords>();
  add_model(command, words->model,
            "a .pt2, a .pt of torch.jit.save, or the name of a .pt2 (METAPROF_MODELS lists folders)");
  add_grid_options(command, words->options.grid);
  add_epoch_options(command, words->options.epoch);
  take_environment(command);
  command
      .option("--find", words->options.dimension,
              "batch, sequence, or with --lengths tokens: the largest --max-tokens")
      .value("WORD")
      .with_default();
  command.flag("--plan", words->options.plan,
               "recompute in backward so that more fits, with the best plan of `metaprof plan`");
  add_json(command, words->json);
  add_width(command, words->width);
  command.on_run([command, words] { return fit(command, *words); });
}

}  // namespace metaprof
