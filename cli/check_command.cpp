// metaprof check: estimates against measurements.

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
#include "evidence/check.h"
#include "meta/core/error.h"
#include "reports/check_report.h"

namespace metaprof {
namespace {

constexpr const char* kDescription =
    "Estimates against measurements of the framework's allocator.\n"
    "\n"
    "  metaprof check gpt2.pt2 --against gpt2.json\n"
    "  metaprof check --models exports --against recordings/*.json --tolerance 0.5%\n"
    "  metaprof check gpt2.pt2 --against gpt2.json --json - | jq .summary\n"
    "\n"
    "Each measurement says with which options it was made; the model is profiled with the same. Where "
    "X.log.gz\n"
    "stands beside X.json, the first event that differs is named.\n"
    "\n"
    "Exit status: 0 all peaks are within the tolerance, 1 some are not, 2 bad usage or input.\n";

struct CheckOptions {
  std::string model, models, tolerance = "1%", workspaces, json;
  std::vector<std::string> measurements;
};

std::string model_of(const Measurement& measurement, const CheckOptions& options) {
  if (options.models.empty()) return options.model;
  std::string path = (std::filesystem::path(options.models) / measurement.export_name()).string();
  if (!std::filesystem::exists(path))
    fail("{}: no such file; {} was measured with this export", path, measurement.path.string());
  return path;
}

CheckResult check(const std::string& path, const CheckOptions& options) {
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

int check_all(const CheckOptions& options) {
  if (options.model.empty() == options.models.empty())
    fail("check: name the model, or the folder of its exports with --models, and not both");
  const double tolerance = parse_share(options.tolerance, "--tolerance");
  std::vector<CheckResult> results(options.measurements.size());
  in_parallel(results.size(), [&](size_t i) { results[i] = check(options.measurements[i], options); });
  if (!options.json.empty()) write_result(options.json, check_json(results, tolerance));
  if (options.json != "-") std::cout << check_text(results, tolerance);
  return std::ranges::all_of(results, [&](const CheckResult& result) { return result.within(tolerance); })
             ? kFine
             : kFinding;
}

}  // namespace

void add_check_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("check", kDescription);
  auto options = std::make_shared<CheckOptions>();
  command->add_option("MODEL", options->model, "the .pt2 that was measured")->option_text(" ");
  command->add_option("--models", options->models, "folder of exports, named as the measurements say")
      ->option_text("DIR");
  command->add_option("--against", options->measurements, "measurements")
      ->required()
      ->option_text("RECORDING.json…");
  command->add_option("--tolerance", options->tolerance, "largest error of a peak, as 1% or 0.01")
      ->option_text("SHARE")
      ->capture_default_str();
  command
      ->add_option("--workspaces", options->workspaces,
                   "none, auto or FILE, as for profile; else what was measured")
      ->option_text("WORD");
  command->add_option("--json", options->json, "write JSON to FILE; -: to stdout, in place of the text")
      ->option_text("FILE");
  command->callback([options, &exit_code] { exit_code = check_all(*options); });
}

}  // namespace metaprof
