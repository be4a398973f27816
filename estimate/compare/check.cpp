#include "estimate/compare/check.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/formats/file.h"
#include "estimate/compare/agreement.h"
#include "estimate/compare/compare.h"
#include "estimate/compare/workspaces.h"
#include "estimate/estimate.h"
#include "estimate/model_run.h"
#include "estimate/parallel.h"
#include "estimate/prepare/captured_run.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/prepare.h"
#include "estimate/prepare/source_lines.h"
#include "estimate/replay.h"
#include "meta/allocator/alloc_conf.h"
#include "program/text/program_file.h"
#include "validation/profiles/baseline.h"
#include "validation/steps/captured.h"
#include "validation/steps/check.h"
#include "validation/steps/snapshot.h"

namespace metaprof {
namespace {

void add_workspaces(CheckResult& result, const Trace& trace, const WorkspaceSources& workspaces) {
  result.workspaces = workspaces_of(trace, workspaces);
  result.workspace_note = workspace_note(workspaces);
}

std::string model_of(const Measurement& measurement, const CheckOptions& options) {
  if (options.models.empty()) return options.model;
  std::string path = (std::filesystem::path(options.models) / measurement.export_name()).string();
  if (!is_there(path))
    fail("{}: no such file; {} was measured with this export", path, measurement.head.path.string());
  return path;
}

// A captured program has the steps that its run kept; what came after them is not estimated.
void keep_captured_steps(Measurement& measurement, const Program& program) {
  if (!program.captured || program.captured->measured.empty()) return;
  const int64_t last = program.captured->measured.back().step;
  std::erase_if(measurement.head.phases,
                [&](const RecordedPhase& row) { return row.part && row.part->step > last; });
}

CheckResult check_run(Measurement measurement, const CheckOptions& options, WorkspacePlanners& planners) {
  if (options.model.empty())
    fail("{}: does not say of which model it is; name the MODEL", measurement.head.path.string());
  const Model model = read_model(options.model, options.run);
  const bool captured = model.program.captured.has_value();
  RunOptions asked = captured ? options.run : with_facts_of_run(options.run, measurement);
  asked.context = "none";  // the measurement's memory is what its allocator could have
  const PreparedRun prepared = prepare(model, asked);
  expect_agreement(measurement, options.run, prepared);
  const RunOptions& run = prepared.options;
  Platform platform = prepared.platform;
  if (measurement.cudnn) platform.libraries.cudnn = *measurement.cudnn;
  WorkspaceSources workspaces;
  const Trace trace = run_model(prepared.program(), run, platform, planners, workspaces);
  keep_captured_steps(measurement, prepared.program());
  CheckResult result = compare(
      measurement, replay_trace(trace, run, platform, measurement.head.device_memory, &prepared.program()));
  if (const auto log = measurement.log())
    result.first_difference = first_difference(*log, trace, platform.device());
  add_workspaces(result, trace, workspaces);
  return result;
}

CheckResult check_measurement(const std::string& path, const CheckOptions& options,
                              WorkspacePlanners& planners) {
  Measurement measurement = read_measurement(path);
  if (measurement.head.kind != HeadKind::recording)
    return check_run(std::move(measurement), options, planners);
  const Model model = read_model(model_of(measurement, options));
  expect_same_model(measurement, model.program);
  RunOptions run = measurement.options;
  run.alloc_conf = measurement.head.alloc_conf;
  run.context = "none";  // the measurement's memory is what its allocator could have
  run.workspaces = options.workspaces_given         ? options.run.workspaces
                   : measurement.planned_workspaces ? "auto"
                                                    : "none";
  const Platform device = device_of(run);
  expect_agreement(measurement, options.run, device);
  Platform platform = measured_on(measurement, device);
  if (!options.run.framework.empty())
    platform = with_framework(std::move(platform), framework_given(options.run));
  WorkspaceSources workspaces;
  const Trace trace = run_model(model.program, run, platform, planners, workspaces);
  CheckResult result =
      compare(measurement, replay_trace(trace, run, platform, platform.hardware.memory, &model.program));
  if (const auto log = measurement.log())
    result.first_difference = first_difference(*log, trace, platform.device());
  add_workspaces(result, trace, workspaces);
  return result;
}

CheckResult check_snapshot(const std::string& path, const CheckOptions& options,
                           WorkspacePlanners& planners) {
  Snapshot snapshot = read_snapshot(path);
  const Model model = read_model(options.model, options.run);
  const PreparedRun prepared = prepare(model, options.run);
  const RunOptions& run = prepared.options;
  const Platform& platform = prepared.platform;
  if (!parse_alloc_conf(allocator_settings(run, platform.framework)).cuts_blocks_by_default_rules())
    snapshot.allocated_peak.reset();  // not every snapshot says with which settings it was made
  WorkspaceSources workspaces;
  const Trace trace = run_model(prepared.program(), run, platform, planners, workspaces);
  CheckResult result = compare(snapshot, replay_trace(trace, run, platform, platform.hardware.memory));
  add_workspaces(result, trace, workspaces);
  return result;
}

CheckResult check_captured(const Model& model, const CheckOptions& options, WorkspacePlanners& planners) {
  const Measurement measurement = measurement_of(model.program);
  RunOptions run = as_captured({}, model.program);
  if (options.workspaces_given) run.workspaces = options.run.workspaces;
  const Platform platform = with_framework(device_of(run), *measurement.head.framework);
  WorkspaceSources workspaces;
  const Trace trace = run_model(model.program, run, platform, planners, workspaces);
  CheckResult result =
      compare(measurement, replay_trace(trace, run, platform, platform.hardware.memory, &model.program));
  result.first_difference = first_difference(*model.program.captured, trace, platform.device());
  add_workspaces(result, trace, workspaces);
  return result;
}

RunOptions options_as_in(const Baseline& before, const CheckOptions& options) {
  RunOptions run = before.options;
  if (options.workspaces_given) run.workspaces = options.run.workspaces;
  if (!options.run.framework.empty()) run.framework = options.run.framework;
  run.memory = fmt::format("{}B", before.device_memory.count);
  return run;
}

BaselineResult check_baseline(const std::string& path, const CheckOptions& options,
                              WorkspacePlanners& planners) {
  const Baseline before = baseline_of(ProfileFile(path));
  const Model model = read_model(options.model, options.run);
  const Estimate now = estimate(model, options_as_in(before, options), planners);
  BaselineResult result = compare(before, now.report.model, figures_of(now.report));
  const std::string& module = result.saved_module ? result.saved_module->name : result.peak_module;
  if (const auto line = users_line_of(model.program, module)) {
    result.source_file = line->file;
    result.source_line = line->line;
  }
  return result;
}

// What stands in one table must be of one device and the same versions.
void expect_runs_agree(const CheckOptions& options) {
  if (options.model.empty() || options.measurements.size() < 2) return;
  std::vector<Measurement> runs;
  for (const std::string& path : options.measurements)
    if (says_no_options(path)) runs.push_back(read_measurement(path));
  expect_agreement(runs);
}

}  // namespace

void check_options(const CheckOptions& options) {
  if (options.measurements.empty() && options.baselines.empty() && !is_program_file(options.model))
    fail("check: give measurements with --against, an earlier report with --baseline, or both");
  if (options.model.empty() == options.models.empty())
    fail("check: name the model, or the folder of its exports with --models, and not both");
  if (!options.baselines.empty() && options.model.empty())
    fail("check: --baseline needs the MODEL: --models goes by the names that measurements have");
  for (const std::string& path : options.measurements)
    if (is_snapshot_file(path) && options.model.empty())
      fail("{}: does not say of which model it is; name the MODEL", path);
}

std::optional<NotRepeated> not_repeated(const Model& captured) try {
  WorkspacePlanners planners;
  const CheckResult result = check_captured(captured, {}, planners);
  const size_t equal = std::min(result.exact_phases, result.exact_reserved_phases);
  if (equal == result.phases) return std::nullopt;
  const CheckRow& peak = result.peak_allocated;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const double error = std::max(std::abs(peak.error().value_or(kNone)),
                                std::abs(result.peak_reserved.error().value_or(kNone)));
  std::string text = fmt::format(
      "the engine repeats {} of {} phases of the run that was captured; peak of allocated bytes: "
      "{} of the run, {} of the engine; metaprof check names the first request that differs",
      equal, result.phases, peak.recorded.value_or(0), peak.estimated.value_or(0));
  return NotRepeated{.text = std::move(text), .error = error};
} catch (const Error& error) {
  return NotRepeated{fmt::format("the engine cannot repeat the run that was captured: {}", error.what()),
                     std::numeric_limits<double>::infinity()};
}

ProfileReport report_as_in_baseline(const std::string& baseline, const CheckOptions& options) {
  WorkspacePlanners planners;
  return estimate(read_model(options.model), options_as_in(baseline_of(ProfileFile(baseline)), options),
                  planners)
      .report;
}

bool says_how_it_was_run(const std::string& file) {
  return !is_snapshot_file(file) && !is_program_file(file) && !says_no_options(file);
}

CheckReport check(const CheckOptions& options, const OnProgress& progress) {
  check_options(options);
  expect_runs_agree(options);
  std::vector<std::string> measurements = options.measurements;
  // A captured program has the run's own measurement in it.
  if (measurements.empty() && options.baselines.empty()) measurements = {options.model};
  CheckReport report;
  report.tolerance = options.tolerance;
  report.of_one_model = !options.model.empty();
  report.measurements.resize(measurements.size());
  report.baselines.resize(options.baselines.size());
  const size_t measured = report.measurements.size();
  WorkspacePlanners planners;
  const auto check_one = [&](size_t i) {
    if (i >= measured) {
      report.baselines[i - measured] = check_baseline(options.baselines[i - measured], options, planners);
      return;
    }
    const std::string& path = measurements[i];
    if (is_program_file(path)) {
      report.measurements[i] = check_captured(read_model(path), options, planners);
      report.measurements[i].log = path;
    } else if (is_snapshot_file(path)) {
      report.measurements[i] = check_snapshot(path, options, planners);
    } else {
      report.measurements[i] = check_measurement(path, options, planners);
    }
  };
  in_parallel(measured + report.baselines.size(), check_one, progress);
  return report;
}

}  // namespace metaprof
