// metaprof ops: what is known of operators, and which operators of models are known.

#include <memory>
#include <sstream>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "core/error.h"
#include "estimate/operators.h"
#include "estimate/prepare/framework.h"
#include "reports/catalog/operators_report.h"
#include "reports/checks/cases_report.h"
#include "validation/cases/repeat_case.h"

namespace metaprof {
namespace {

constexpr const char* kOpsDescription =
    "The known operators, a line for each record.\n"
    "\n"
    "  metaprof ops                                   all of them\n"
    "  metaprof ops norm                              those whose name has this word\n"
    "  metaprof ops --json ops.json\n"
    "  metaprof ops --coverage a.pt2 b.pt2            which operators of these models are supported\n"
    "  metaprof ops --replay h200.log.gz --only '*/softmax/*' --verbose\n"
    "                                                 recorded cases, replayed and compared\n"
    "\n"
    "Exit status: 0 success, 1 recorded cases differ or an operator is unsupported, 2 bad usage or input.\n";

struct OpsOptions {
  std::string word, json, framework;
  std::vector<std::string> coverage;
  CaseSelection cases;
  bool verbose = false;
};

int repeat(const OpsOptions& options) {
  CaseSelection cases = options.cases;
  RunOptions run;
  run.framework = options.framework;
  if (!run.framework.empty()) cases.framework = framework_given(run);
  const CaseSummary summary = repeat_cases(cases);
  if (options.json != "-") {
    if (options.verbose) print_text(cases_differences_text(summary) + "\n");
    print_text(cases_text(summary));
  }
  if (!options.json.empty()) write_result(options.json, cases_json(summary));
  return summary.totals.all_equal() ? kFine : kFinding;
}

void check_options(const OpsOptions& options) {
  const bool replays = !options.cases.logs.empty();
  if (replays + !options.coverage.empty() + !options.word.empty() > 1)
    fail("give one of WORD, --coverage and --replay");
  if (!replays && (options.cases.only != "*" || options.verbose || !options.framework.empty()))
    fail("--only, --framework and --verbose belong to --replay");
}

int ops(const OpsOptions& options) {
  check_options(options);
  if (!options.cases.logs.empty()) return repeat(options);
  std::string text, json;
  int exit_code = kFine;
  if (!options.coverage.empty()) {
    const Coverage found = coverage(options.coverage);
    if (found.models_known != found.models) exit_code = kFinding;
    text = coverage_text(found);
    json = coverage_json(found);
  } else {
    const std::vector<OperatorRow> rows = operators_with(options.word);
    if (rows.empty()) fail("no operator has '{}' in its name; 'metaprof ops' lists all", options.word);
    text = operators_text(rows);
    json = operators_json(rows);
  }
  if (!options.json.empty()) write_result(options.json, json);
  if (options.json != "-") print_text(text);
  return exit_code;
}

}  // namespace

void add_ops_command(CommandLine& line) {
  Command command = line.add("ops", kOpsDescription);
  auto options = std::make_shared<OpsOptions>();
  command.option("WORD", options->word, "show only operators with this word in their name").value(" ");
  command.option("--coverage", options->coverage, "models whose operators to look up").value("MODEL…");
  command.option("--replay", options->cases.logs, "recordings of operator cases to replay and compare")
      .value("LOG.gz…");
  command.option("--only", options->cases.only, "only cases with such a name: '*/softmax/*'").value("GLOB");
  command
      .option("--framework", options->framework,
              "version of PyTorch that recorded them (logs do not have it)")
      .value("VERSION")
      .with_default(to_string(CaseSelection().framework));
  command.flag("--verbose", options->verbose, "show every difference");
  command.option("--json", options->json, "write JSON to FILE; -: to stdout, instead of the text")
      .value("FILE");
  command.on_run([options] { return ops(*options); });
}

}  // namespace metaprof
