// metaprof fit: the largest batch, or the longest sequence, of which a training step fits.

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/console.h"
#include "cli/estimate.h"
#include "cli/grid.h"
#include "cli/metaprof.h"
#include "cli/parallel.h"
#include "cli/sizes.h"
#include "core/error.h"
#include "reports/grid_report.h"

namespace metaprof {
namespace {

constexpr const char* kDescription =
    "The largest batch, or the longest sequence, of which a training step fits.\n"
    "\n"
    "  metaprof fit model.pt2 --device rtx4090\n"
    "  metaprof fit model.pt2 --device a100,h100 --precision fp32,amp-bf16 --optimizer sgd,adamw\n"
    "  metaprof fit gpt2.pt2 --device l40s --sequence 256,512,1024\n"
    "  metaprof fit gpt2.pt2 --device l40s --find sequence --batch 1\n"
    "\n"
    "The margin is for what is not the framework's: the driver's context, other processes.\n"
    "\n"
    "Exit status: 0 something fits in each row, 1 not even 1 does in some, 2 bad usage or input.\n";

constexpr int kLargest = 1 << 20;

struct FitOptions {
  Grid grid;
  std::string find = "batch", margin = "5%", json;
  std::optional<int> batch;
};

class Search {
 public:
  Search(const ProfileOptions& run, const std::string& dimension, double margin)
      : run_(run), dimension_(dimension), device_(device_of(run)) {
    row_.memory = {static_cast<int64_t>(static_cast<double>(device_.memory.count) * (1 - margin))};
  }

  FitRow find() {
    if (!fits(1)) {
      const Phases needed = replay_trace(trace_, run_, device_, unlimited_memory());
      row_.allocated = {needed.peak.allocated_bytes.peak};
      row_.reserved = {needed.peak.reserved_bytes.peak};
      return row_;
    }
    int most = 1;  // fits
    while (most < kLargest && fits(2 * most)) most *= 2;
    row_.unbounded = most == kLargest;
    for (int step = most / 2; step > 0 && !row_.unbounded; step /= 2)
      if (fits(most + step)) most += step;
    row_.largest = most;
    return row_;
  }

 private:
  bool fits(int size) {
    (dimension_ == "batch" ? run_.batch : run_.sequence) = size;
    ++row_.runs;
    ProfileReport report;
    trace_ = run_program(program_of(run_), run_, device_, report);
    const Phases phases = replay_trace(trace_, run_, device_, row_.memory);
    if (phases.out_of_memory || phases.peak.reserved_bytes.peak > row_.memory.count) return false;
    row_.allocated = {phases.peak.allocated_bytes.peak};
    row_.reserved = {phases.peak.reserved_bytes.peak};
    return true;
  }

  ProfileOptions run_;
  const std::string& dimension_;
  const DeviceProfile device_;
  Trace trace_;
  FitRow row_;
};

ShownOptions shown(const ProfileOptions& run) {
  ShownOptions options = {
      {"device", run.device}, {"precision", run.step.precision}, {"optimizer", run.step.optimizer}};
  if (run.step.optimizer_impl != "default") options.emplace_back("optimizer_impl", run.step.optimizer_impl);
  if (!run.step.checkpoint.empty()) options.emplace_back("checkpoint", run.step.checkpoint);
  if (run.step.accumulate > 1) options.emplace_back("accumulate", std::to_string(run.step.accumulate));
  if (run.batch) options.emplace_back("batch", std::to_string(*run.batch));
  if (run.sequence) options.emplace_back("sequence", std::to_string(*run.sequence));
  return options;
}

int fit(const FitOptions& options) {
  if (options.find != "batch" && options.find != "sequence")
    fail("--find: '{}' is no dimension of the inputs; there are batch, sequence", options.find);
  Grid grid = options.grid;
  if (options.batch) grid.batch = {*options.batch};
  if (options.find == "batch" && options.batch)
    fail("--batch: is what fit looks for; --find sequence keeps it");
  if (options.find == "sequence" && !grid.sequence.empty())
    fail("--sequence: is what --find sequence looks for");
  const std::vector<ProfileOptions> runs = combinations(grid);
  FitReport report{.model = std::filesystem::path(grid.model).stem().string(),
                   .dimension = options.find,
                   .margin = parse_share(options.margin, "--margin"),
                   .rows = std::vector<FitRow>(runs.size())};
  if (report.margin >= 1) fail("--margin: {} leaves nothing", options.margin);
  in_parallel(runs.size(), [&](size_t i) {
    report.rows[i] = Search(runs[i], options.find, report.margin).find();
    report.rows[i].options = shown(runs[i]);
  });
  if (!options.json.empty()) write_result(options.json, fit_json(report));
  if (options.json != "-") std::cout << fit_text(report);
  return report.all_fit() ? kFine : kFinding;
}

}  // namespace

void add_fit_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("fit", kDescription);
  auto options = std::make_shared<FitOptions>();
  add_grid_options(*command, options->grid);
  command->add_option("--find", options->find, "batch or sequence")
      ->option_text("WORD")
      ->capture_default_str();
  command->add_option("--batch", options->batch, "with --find sequence: the batch size")
      ->option_text("N")
      ->check(CLI::Range(1, 1 << 30));
  command->add_option("--margin", options->margin, "share of the memory to leave free, as 5% or 0.05")
      ->option_text("SHARE")
      ->capture_default_str();
  command->add_option("--json", options->json, "write JSON to FILE; -: to stdout, in place of the text")
      ->option_text("FILE");
  command->callback([options, &exit_code] { exit_code = fit(*options); });
}

}  // namespace metaprof
