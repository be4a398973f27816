// metaprof check: estimates against measurements and earlier reports.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/console.h"
#include "cli/estimate.h"
#include "cli/inputs.h"
#include "cli/metaprof.h"
#include "cli/parallel.h"
#include "cli/sizes.h"
#include "evidence/baseline.h"
#include "evidence/check.h"
#include "meta/core/error.h"
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
    "\n"
    "A measurement and a report of `metaprof profile --json` say with which options they were made; the "
    "model\n"
    "is profiled with the same. Where X.log.gz stands beside X.json, the first event that differs is named.\n"
    "\n"
    "Exit status: 0 all is within the tolerance, 1 a peak is not, or something grew, 2 bad usage or input.\n";

struct CheckOptions {
  std::string model, models, tolerance = "1%", workspaces, json, junit, sarif;
  std::vector<std::string> measurements, baselines;
};

std::string model_of(const Measurement& measurement, const CheckOptions& options) {
  if (options.models.empty()) return options.model;
  std::string path = (std::filesystem::path(options.models) / measurement.export_name()).string();
  if (!std::filesystem::exists(path))
    fail("{}: no such file; {} was measured with this export", path, measurement.path.string());
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
  run.alloc_conf = measurement.options.alloc_conf;
  run.workspaces =
      options.workspaces.empty() ? (measurement.planned_workspaces ? "auto" : "none") : options.workspaces;
  DeviceProfile device = device_of(run);
  device.memory = measurement.device_memory;
  ProfileReport report;
  const Trace trace = run_program(program, run, device, report);
  CheckResult result = compare(measurement, replay_trace(trace, run, device, device.memory));
  if (const auto log = measurement.log())
    result.first_difference = first_difference(*log, trace, device.type);
  return result;
}

BaselineResult check_baseline(const std::string& path, const CheckOptions& options) {
  const Baseline before = read_baseline(path, read_text_file(path));
  ProfileOptions run;
  run.model = options.model;
  run.step = before.options.step;
  run.batch = before.options.batch;
  run.sequence = before.options.sequence;
  run.settings = before.options.settings;
  run.device = before.device;
  run.alloc_conf = before.options.alloc_conf;
  run.workspaces = options.workspaces.empty() ? before.options.workspaces : options.workspaces;
  check_options(run);
  DeviceProfile device = device_of(run);
  device.memory = before.device_memory;
  ProfileReport report;
  const Trace trace = run_program(program_of(run), run, device, report);
  profile_trace(trace, run, device, report);
  return compare(before, read_baseline("the new report", profile_json(report)));
}

void expect_usable(const CheckOptions& options) {
  if (options.measurements.empty() && options.baselines.empty())
    fail("check: give measurements with --against, an earlier report with --baseline, or both");
  if (options.model.empty() == options.models.empty())
    fail("check: name the model, or the folder of its exports with --models, and not both");
  if (!options.baselines.empty() && options.model.empty())
    fail("check: --baseline needs the MODEL: --models goes by the names that measurements have");
  size_t to_stdout = 0;
  for (const std::string* file : {&options.json, &options.junit, &options.sarif}) to_stdout += *file == "-";
  if (to_stdout > 1) fail("check: only one of --json, --junit and --sarif can go to stdout");
}

int check_all(const CheckOptions& options) {
  expect_usable(options);
  CheckReport report;
  report.tolerance = parse_share(options.tolerance, "--tolerance");
  report.measurements.resize(options.measurements.size());
  report.baselines.resize(options.baselines.size());
  const size_t measured = report.measurements.size();
  in_parallel(measured + report.baselines.size(), [&](size_t i) {
    if (i < measured)
      report.measurements[i] = check_measurement(options.measurements[i], options);
    else
      report.baselines[i - measured] = check_baseline(options.baselines[i - measured], options);
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
  command->add_option("MODEL", options->model, "the .pt2 that was measured")->option_text(" ");
  command->add_option("--models", options->models, "folder of exports, named as the measurements say")
      ->option_text("DIR");
  command->add_option("--against", options->measurements, "measurements")->option_text("RECORDING.json…");
  command->add_option("--baseline", options->baselines, "earlier reports of `metaprof profile --json`")
      ->option_text("REPORT.json…");
  command->add_option("--tolerance", options->tolerance, "largest error of a peak, and growth, as 1% or 0.01")
      ->option_text("SHARE")
      ->capture_default_str();
  command
      ->add_option("--workspaces", options->workspaces, "none, auto or FILE, as for profile; else as it was")
      ->option_text("WORD");
  command->add_option("--json", options->json, "write JSON to FILE; -: to stdout, in place of the text")
      ->option_text("FILE");
  command->add_option("--junit", options->junit, "write JUnit's XML to FILE")->option_text("FILE");
  command->add_option("--sarif", options->sarif, "write SARIF 2.1.0 to FILE")->option_text("FILE");
  command->callback([options, &exit_code] { exit_code = check_all(*options); });
}

}  // namespace metaprof
