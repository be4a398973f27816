// metaprof check: estimates against measurements and earlier reports.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "allocator/alloc_conf.h"
#include "cli/console.h"
#include "cli/estimate.h"
#include "cli/inputs.h"
#include "cli/metaprof.h"
#include "cli/parallel.h"
#include "cli/sizes.h"
#include "core/error.h"
#include "evidence/profiles/baseline.h"
#include "evidence/steps/check.h"
#include "evidence/steps/snapshot.h"
#include "reports/check_report.h"

namespace metaprof {
namespace {

constexpr const char* kDescription =
    "Estimates against measurements of the framework's allocator, and against earlier reports.\n"
    "\n"
    "  metaprof check gpt2.pt2 --against gpt2.json\n"
    "  metaprof check --models exports --against recordings/*.json --tolerance 0.5%\n"
    "  metaprof check gpt2.pt2 --against gpt2.json --json - | jq .summary\n"
    "  metaprof check gpt2.pt2 --baseline accepted.json --junit check.xml --sarif check.sarif\n"
    "  metaprof check gpt2.pt2 --against step.pickle --precision amp-bf16 --optimizer adamw --steps 2\n"
    "\n"
    "A measurement and a report of `metaprof profile --json` say with which options they were made; those "
    "are\n"
    "taken. Where X.log.gz stands beside X.json, the first event that differs is named.\n"
    "A memory snapshot of the framework (*.pickle) does not say it: the options given here are taken.\n"
    "\n"
    "Exit status: 0 all is within the tolerance, 1 a peak is not, or something grew, 2 bad usage or input.\n";

struct CheckOptions {
  ProfileOptions run;       ///< the model, and how a snapshot's steps were run
  bool workspaces = false;  ///< were given
  std::string models, tolerance = "1%", json, junit, sarif;
  std::vector<std::string> measurements, baselines;
};

std::string model_of(const Measurement& measurement, const CheckOptions& options) {
  if (options.models.empty()) return options.run.model;
  std::string path = (std::filesystem::path(options.models) / measurement.export_name()).string();
  if (!std::filesystem::exists(path))
    fail("{}: no such file; {} was measured with this export", path, measurement.head.path.string());
  return path;
}

CheckResult check_measurement(const std::string& path, const CheckOptions& options) {
  const Measurement measurement = read_measurement(path);
  const Program program = load_program(model_of(measurement, options));
  expect_same_model(measurement, program);
  ProfileOptions run;
  run.model = program.origin;
  run.step = measurement.options.step;
  run.device = measurement.options.device;
  run.alloc_conf = measurement.head.alloc_conf;
  run.workspaces = options.workspaces               ? options.run.workspaces
                   : measurement.planned_workspaces ? "auto"
                                                    : "none";
  DeviceProfile device = device_of(run);
  device.memory = measurement.head.device_memory;
  ProfileReport report;
  const Trace trace = run_program(program, run, device, report);
  CheckResult result = compare(measurement, replay_trace(trace, run, device, device.memory));
  if (const auto log = measurement.log())
    result.first_difference = first_difference(*log, trace, device.type);
  return result;
}

CheckResult check_snapshot(const std::string& path, const CheckOptions& options) {
  Snapshot snapshot = read_snapshot(path);
  ProfileOptions run = options.run;
  if (!options.workspaces) run.workspaces = "auto";  // a real device plans
  const AllocConf conf = parse_alloc_conf(run.alloc_conf), usual;
  if (conf.max_split_size != usual.max_split_size ||
      conf.roundup_power2_divisions != usual.roundup_power2_divisions)
    snapshot.allocated_peak.reset();  // not every snapshot says with which settings it was made
  const DeviceProfile device = device_of(run);
  ProfileReport report;
  const Trace trace = run_program(program_of(run), run, device, report);
  return compare(snapshot, replay_trace(trace, run, device, device.memory));
}

BaselineResult check_baseline(const std::string& path, const CheckOptions& options) {
  const Baseline before = baseline_of(ProfileFile(path));
  ProfileOptions run;
  run.model = options.run.model;
  run.step = before.options.step;
  run.batch = before.options.batch;
  run.sequence = before.options.sequence;
  run.settings = before.options.settings;
  run.device = before.device;
  run.alloc_conf = before.options.alloc_conf;
  run.workspaces = options.workspaces ? options.run.workspaces : before.options.workspaces;
  check_options(run);
  DeviceProfile device = device_of(run);
  device.memory = before.device_memory;
  ProfileReport report;
  const Trace trace = run_program(program_of(run), run, device, report);
  profile_trace(trace, run, device, report);
  return compare(before, baseline_of(ProfileFile("the new report", profile_json(report))));
}

void expect_usable(const CheckOptions& options) {
  if (options.measurements.empty() && options.baselines.empty())
    fail("check: give measurements with --against, an earlier report with --baseline, or both");
  if (options.run.model.empty() == options.models.empty())
    fail("check: name the model, or the folder of its exports with --models, and not both");
  if (!options.baselines.empty() && options.run.model.empty())
    fail("check: --baseline needs the MODEL: --models goes by the names that measurements have");
  for (const std::string& path : options.measurements)
    if (is_snapshot_file(path) && options.run.model.empty())
      fail("{}: does not say of which model it is; name the MODEL", path);
  size_t to_stdout = 0;
  for (const std::string* file : {&options.json, &options.junit, &options.sarif}) to_stdout += *file == "-";
  if (to_stdout > 1) fail("check: only one of --json, --junit and --sarif can go to stdout");
}

// Options of the run are for snapshots: everything else says itself how it was run.
void expect_run_options_apply(const CLI::App& command, const CheckOptions& options) {
  std::vector<std::string> others = options.baselines;
  std::ranges::copy_if(options.measurements, std::back_inserter(others),
                       [](const std::string& path) { return !is_snapshot_file(path); });
  if (others.empty()) return check_options(options.run);
  const std::string why =
      fmt::format("is for snapshots (*.pickle): {} says itself how it was run", others[0]);
  refuse_step_options(command, why);
  for (const char* name : {"--device", "--memory", "--alloc-conf", "--env"})
    if (command.get_option(name)->count() > 0) fail("{} {}", name, why);
}

int check_all(const CLI::App& command, const CheckOptions& options) {
  expect_usable(options);
  expect_run_options_apply(command, options);
  CheckReport report;
  report.tolerance = parse_share(options.tolerance, "--tolerance");
  report.measurements.resize(options.measurements.size());
  report.baselines.resize(options.baselines.size());
  const size_t measured = report.measurements.size();
  in_parallel(measured + report.baselines.size(), [&](size_t i) {
    if (i >= measured)
      report.baselines[i - measured] = check_baseline(options.baselines[i - measured], options);
    else if (const std::string& path = options.measurements[i]; is_snapshot_file(path))
      report.measurements[i] = check_snapshot(path, options);
    else
      report.measurements[i] = check_measurement(path, options);
  });
  if (!options.json.empty()) write_result(options.json, check_json(report));
  if (!options.junit.empty()) write_result(options.junit, check_junit(report));
  if (!options.sarif.empty()) write_result(options.sarif, check_sarif(report));
  if (options.json != "-" && options.junit != "-" && options.sarif != "-") std::cout << check_text(report);
  return report.within() ? kFine : kFinding;
}

}  // namespace

void add_check_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("check", kDescription);
  auto options = std::make_shared<CheckOptions>();
  add_run_options(*command, options->run);
  command->get_option("MODEL")->required(false)->description("the .pt2 that was measured");
  CLI::Option* workspaces = command->get_option("--workspaces");
  workspaces->default_str("")->description("none, auto or FILE, as for profile; else as it was measured");
  command->add_option("--models", options->models, "folder of exports, named as the measurements say")
      ->option_text("DIR");
  command->add_option("--against", options->measurements, "measurements, snapshots")
      ->option_text("RECORDING.json…");
  command->add_option("--baseline", options->baselines, "earlier reports of `metaprof profile --json`")
      ->option_text("REPORT.json…");
  command->add_option("--tolerance", options->tolerance, "largest error of a peak, and growth, as 1% or 0.01")
      ->option_text("SHARE")
      ->capture_default_str();
  command->add_option("--json", options->json, "write JSON to FILE; -: to stdout, in place of the text")
      ->option_text("FILE");
  command->add_option("--junit", options->junit, "write JUnit's XML to FILE")->option_text("FILE");
  command->add_option("--sarif", options->sarif, "write SARIF 2.1.0 to FILE")->option_text("FILE");
  command->callback([command, workspaces, options, &exit_code] {
    options->workspaces = workspaces->count() > 0;
    exit_code = check_all(*command, *options);
  });
}

}  // namespace metaprof
