// metaprof sweep: what steps cost for every combination of some options.

#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/console.h"
#include "cli/estimate.h"
#include "cli/grid.h"
#include "cli/metaprof.h"
#include "cli/parallel.h"
#include "core/error.h"
#include "reports/grid_report.h"

namespace metaprof {
namespace {

constexpr const char* kDescription =
    "What training steps cost for every combination of some options.\n"
    "\n"
    "  metaprof sweep model.pt2 --batch 1,2,4,8 --precision fp32,amp-bf16\n"
    "  metaprof sweep model.pt2 --device a100,h100 --optimizer sgd,adamw --csv grid.csv\n"
    "  metaprof sweep model.pt2 --checkpoint none,'model.layers.*' --json - | jq '.rows[].fits'\n"
    "\n"
    "A combination that cannot be run has an error in its row.\n"
    "\n"
    "Exit status: 0 all combinations fit, 1 some do not or cannot be run, 2 bad usage or input.\n";

struct SweepOptions {
  Grid grid;
  std::string csv = "-", json;
};

ShownOptions shown(const ProfileOptions& run) {
  const auto number = [](const std::optional<int>& value) { return value ? std::to_string(*value) : ""; };
  return {{"device", run.device},
          {"precision", run.step.precision},
          {"optimizer", run.step.optimizer},
          {"optimizer_impl", run.step.optimizer_impl},
          {"checkpoint", run.step.checkpoint},
          {"accumulate", std::to_string(run.step.accumulate)},
          {"sequence", number(run.sequence)},
          {"batch", number(run.batch)}};
}

SweepRow run_one(const ProfileOptions& run) {
  SweepRow row{.options = shown(run), .error = {}};
  try {
    const DeviceProfile device = device_of(run);
    ProfileReport report;
    const Trace trace = run_program(program_of(run), run, device, report);
    profile_trace(trace, run, device, report);
    const AllocatorNumbers& peak = report.memory.phases.peak;
    row.fits = fits(report.memory.phases, device.memory);
    row.parameter_bytes = report.memory.parameters.all.bytes.count;
    row.saved_bytes = report.memory.saved.bytes.count;
    row.allocated = peak.allocated_bytes.peak;
    row.requested = peak.requested_bytes.peak;
    row.reserved = peak.reserved_bytes.peak;
    row.flops_forward = report.counts.total.counted.forward.count;
    row.flops_backward = (report.counts.total.counted.backward + report.counts.total.counted.recompute).count;
    row.flops_recompute = report.counts.total.counted.recompute.count;
  } catch (const Error& error) {
    row.error = error.what();
  }
  return row;
}

int sweep(const SweepOptions& options) {
  const std::vector<ProfileOptions> runs = combinations(options.grid);
  (void)program_of(runs[0]);  // a model that cannot be read is no finding
  SweepReport report{.model = std::filesystem::path(options.grid.model).stem().string(),
                     .rows = std::vector<SweepRow>(runs.size())};
  in_parallel(runs.size(), [&](size_t i) { report.rows[i] = run_one(runs[i]); });
  if (!options.json.empty()) write_result(options.json, sweep_json(report));
  if (options.json != "-" || options.csv != "-") write_result(options.csv, sweep_csv(report));
  return report.all_fit() ? kFine : kFinding;
}

}  // namespace

void add_sweep_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("sweep", kDescription);
  auto options = std::make_shared<SweepOptions>();
  add_grid_options(*command, options->grid);
  command->add_option("--batch", options->grid.batch, "batch sizes")
      ->delimiter(',')
      ->option_text("N,…")
      ->group("The grid");
  command->add_option("--csv", options->csv, "write CSV to FILE; -: to stdout")
      ->option_text("FILE")
      ->capture_default_str();
  command->add_option("--json", options->json, "write JSON to FILE; -: to stdout, in place of CSV")
      ->option_text("FILE");
  command->callback([options, &exit_code] { exit_code = sweep(*options); });
}

}  // namespace metaprof
