// metaprof check: estimates against measurements and earlier reports.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "core/error.h"
#include "core/formats/output_file.h"
#include "estimate/compare/check.h"
#include "estimate/prepare/sizes.h"
#include "reports/checks/check_report.h"
#include "reports/profile/profile_report.h"

namespace metaprof {
namespace {

constexpr const char* kCheckDescription =
    "Estimates compared with measurements of PyTorch's allocator, and with earlier reports.\n"
    "\n"
    "  metaprof check gpt2.pt2 --against gpt2.json\n"
    "  metaprof check --models exports --against recordings/*.json --tolerance 0.5%\n"
    "  metaprof check gpt2.pt2 --against gpt2.json --json - | jq .summary\n"
    "  metaprof check gpt2.pt2 --baseline accepted.json --junit check.xml --sarif check.sarif\n"
    "  metaprof check gpt2.pt2 --against step.pickle --precision amp-bf16 --optimizer adamw --steps 2\n"
    "  metaprof check step.mp --against emulated.json real.json       reports of metaprof run\n"
    "\n"
    "The options are those of the recording, or of the report of `metaprof profile --json`.\n"
    "With X.log.gz beside X.json, the first event that differs is named.\n"
    "A memory snapshot of PyTorch (*.pickle) and a report of `metaprof run --json` do not say how their\n"
    "steps were made: give the options here. A captured program (*.mp) has them.\n"
    "\n"
    "Exit status: 0 all within the tolerance, 1 a peak is not or a figure grew, 2 bad usage or input.\n";

struct CheckWords {
  CheckOptions options;
  std::string tolerance = "1%", json, junit, sarif;
  bool accept = false;
};

void expect_one_on_stdout(const CheckWords& words) {
  size_t to_stdout = 0;
  for (const std::string* file : {&words.json, &words.junit, &words.sarif}) to_stdout += *file == "-";
  if (to_stdout > 1) fail("check: only one of --json, --junit and --sarif can go to stdout");
}

// Options of the run are for snapshots and reports of runs: everything else says itself how it was run.
void expect_run_options_apply(const Command& command, const CheckOptions& options) {
  std::vector<std::string> others = options.baselines;
  std::ranges::copy_if(options.measurements, std::back_inserter(others), says_how_it_was_run);
  if (others.empty()) return;
  const std::string why = fmt::format(
      "is for snapshots (*.pickle) and reports of metaprof run: {} has its own options", others[0]);
  for (const RunOption& option : run_options())
    if (option.name != "workspaces" && option.name != "framework" && command.was_given(option.flag()))
      fail("{} {}", option.flag(), why);
}

int check(const Command& command, const CheckWords& words) {
  CheckOptions options = words.options;
  options.workspaces_given = command.was_given("--workspaces");
  expect_one_on_stdout(words);
  if (words.accept && options.baselines.empty()) fail("check: --accept needs --baseline");
  check_options(options);
  expect_run_options_apply(command, options);
  options.tolerance = parse_share(words.tolerance, "--tolerance");
  const CheckReport report = [&] {
    ProgressLine line("check:");
    return metaprof::check(options, [&](size_t done, size_t all) { line.tell(done, all); });
  }();
  if (!words.json.empty()) write_result(words.json, check_json(report));
  if (!words.junit.empty()) write_result(words.junit, check_junit(report));
  if (!words.sarif.empty()) write_result(words.sarif, check_sarif(report, METAPROF_VERSION));
  if (words.json != "-" && words.junit != "-" && words.sarif != "-") print_text(check_text(report));
  if (words.accept) {
    for (const std::string& baseline : options.baselines)
      write_file(baseline, baseline_json(report_as_in_baseline(baseline, options)));
    return kFine;
  }
  return report.within() ? kFine : kFinding;
}

}  // namespace

void add_check_command(CommandLine& line) {
  Command command = line.add("check", kCheckDescription);
  auto words = std::make_shared<CheckWords>();
  CheckOptions& options = words->options;
  add_model(command, options.model, "the .pt2 that was measured").required(false);
  add_run_options(command, options.run);
  command.existing("--workspaces")
      .with_default("")
      .help("none, auto or FILE, as for profile [as it was measured]");
  command.existing("--framework")
      .with_default("")
      .help("version of PyTorch, 2.6 to 2.15 [the one that was measured]");
  command.option("--models", options.models, "folder of exports, named after the recordings").value("DIR");
  command.option("--against", options.measurements, "reports of runs, recordings, snapshots").value("FILE…");
  command.option("--baseline", options.baselines, "earlier reports of `metaprof profile --json`")
      .value("REPORT.json…");
  command.flag(
      "--accept", words->accept,
      "write what is estimated now into the baselines, shortened to what is compared; exit status 0");
  command.option("--tolerance", words->tolerance, "largest error of a peak, and growth, as 1% or 0.01")
      .value("SHARE")
      .with_default();
  add_json(command, words->json);
  command.option("--junit", words->junit, "write JUnit's XML to FILE").value("FILE");
  command.option("--sarif", words->sarif, "write SARIF 2.1.0 to FILE").value("FILE");
  command.on_run([command, words] { return check(command, *words); });
}

}  // namespace metaprof
