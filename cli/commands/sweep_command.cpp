// metaprof sweep: what steps cost for every combination of some options.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "estimate/search/sweep.h"
#include "reports/search/grid_report.h"

namespace metaprof {
namespace {

constexpr const char* kSweepDescription =
    "The cost of training steps for every combination of options.\n"
    "\n"
    "  metaprof sweep model.pt2 --batch 1,2,4,8 --precision fp32,amp-bf16\n"
    "  metaprof sweep model.pt2 --device a100,h100 --optimizer sgd,adamw --csv grid.csv\n"
    "  metaprof sweep model.pt2 --checkpoint none,'model.layers.*' --json - | jq '.rows[].fits'\n"
    "  metaprof sweep model.pt2 --batch 1:512 --csv 3.csv --shard 3/16   a part of it, for job arrays\n"
    "\n"
    "A combination that cannot be run has an error in its row. A star marks those that no other beats\n"
    "in both memory and FLOPs.\n"
    "\n"
    "Exit status: 0 all combinations fit, 1 some do not fit or cannot be run, 2 bad usage or input.\n";

struct SweepWords {
  std::string model, csv, json;
  Grid grid;
  EpochOptions epoch;
  Shard shard;
  int64_t width = 0;
};

int sweep(const Command& command, const SweepWords& words) {
  check_epoch_options(command, words.epoch);
  const Model model = read_model_for(words.grid, words.model);
  require_whole_step(model);
  const std::vector<std::string> warnings = warnings_of(model, words.grid.common);
  print_warnings(warnings);
  SweepReport report = [&] {
    ProgressLine line("sweep:");
    return metaprof::sweep(model, words.grid, words.epoch, words.shard,
                           [&](size_t done, size_t all) { line.tell(done, all); });
  }();
  print_notes(report.notes);
  report.notes.insert(report.notes.begin(), warnings.begin(), warnings.end());
  if (!words.json.empty()) write_result(words.json, sweep_json(report));
  if (!words.csv.empty()) write_result(words.csv, sweep_csv(report));
  if (words.json != "-" && words.csv != "-") print_text(sweep_text(report, static_cast<size_t>(words.width)));
  return report.all_fit() ? kFine : kFinding;
}

}  // namespace

void add_sweep_command(CommandLine& line) {
  Command command = line.add("sweep", kSweepDescription);
  auto words = std::make_shared<SweepWords>();
  add_model(command, words->model,
            "a .pt2, a .pt of torch.jit.save, or the name of a .pt2 (METAPROF_MODELS lists folders)");
  add_grid_options(command, words->grid);
  add_epoch_options(command, words->epoch);
  take_environment(command);
  command.option("--csv", words->csv, "write CSV to FILE; -: to stdout, instead of the table").value("FILE");
  command
      .option(
          "--shard", [words](const std::string& text) { words->shard = Shard::from_text(text); },
          "run only the I-th of N parts of the combinations; appended, the tables of all parts are the whole")
      .value("I/N");
  add_json(command, words->json);
  add_width(command, words->width);
  command.on_run([command, words] { return sweep(command, *words); });
}

}  // namespace metaprof
