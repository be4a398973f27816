// metaprof ops: what is known of operators, and which operators of models are known.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/metaprof.h"
#include "core/error.h"
#include "evidence/cases/repeat_case.h"
#include "meta/ops/all.h"
#include "meta/run/interpreter.h"
#include "reports/cases_report.h"
#include "reports/operators_report.h"

namespace metaprof {
namespace {

constexpr const char* kDescription =
    "What is known of operators: a line for each record.\n"
    "\n"
    "  metaprof ops                                   all of them\n"
    "  metaprof ops norm                              those whose name has this word\n"
    "  metaprof ops --json ops.json\n"
    "  metaprof ops --coverage a.pt2 b.pt2            which operators of these models are known\n"
    "  metaprof ops --replay h200.log.gz --only '*/softmax/*' --verbose\n"
    "                                                 recorded cases against what is known\n"
    "\n"
    "Exit status: 0 fine, 1 recorded cases differ or an operator is not known, 2 bad usage or input.\n";

struct OpsOptions {
  std::string word, json;
  std::vector<std::string> coverage;
  CaseSelection cases;
  bool verbose = false;
};

std::vector<std::string> facts_of(const Operator& op) {
  const Facts& facts = op.record.facts;
  std::vector<std::string> words;
  const auto add = [&](bool holds, const char* word) {
    if (holds) words.emplace_back(word);
  };
  add(op.record.meta.composite, "composite");
  add(facts.view, "view");
  add(op.in_place, "in-place");
  add(op.writes && !op.in_place, "writes an argument");
  add(facts.random, "random");
  add(facts.reads_data, "reads data");
  add(facts.cudagraph_unsafe, "unsafe in CUDA graphs");
  add(facts.artefact, "not run by eager execution");
  switch (facts.autocast) {
    case Autocast::none: break;
    case Autocast::lower_precision: words.emplace_back("autocast: lower precision"); break;
    case Autocast::fp32: words.emplace_back("autocast: fp32"); break;
    case Autocast::fp32_set_dtype: words.emplace_back("autocast: fp32 result"); break;
    case Autocast::promote: words.emplace_back("autocast: widest type"); break;
    case Autocast::banned: words.emplace_back("autocast: an error"); break;
  }
  return words;
}

std::vector<std::string> derivatives_of(const Operator& op) {
  std::vector<std::string> rows;
  for (const Derivative& row : op.record.derivatives.rows) {
    std::vector<std::string_view> of, reads;
    for (const Name& name : row.of) of.push_back(name.text);
    for (const Name& name : row.reads) reads.push_back(name.text);
    rows.push_back(reads.empty() ? fmt::format("{}", fmt::join(of, ", "))
                                 : fmt::format("{} reads {}", fmt::join(of, ", "), fmt::join(reads, ", ")));
  }
  return rows;
}

OperatorRow row_of(const Operator& op) {
  OperatorRow row;
  row.name = op.name;
  row.schema = op.record.schema;
  row.summary = op.record.summary;
  row.composite = op.record.meta.composite;
  if (op.has_derivative()) row.node = op.node_name;
  row.derivatives = derivatives_of(op);
  for (const Kernel& kernel : op.record.kernels)
    row.kernels.emplace_back(kernel.device == DeviceType::cpu ? "cpu" : "cuda");
  row.flops = op.record.flops.count ? "formula" : row.composite ? "by its calls" : "free";
  row.facts = facts_of(op);
  return row;
}

std::vector<OperatorRow> rows_with(std::string_view word) {
  std::vector<OperatorRow> rows;
  for (const auto& op : standard_registry().operators())
    if (op->name.find(word) != std::string::npos) rows.push_back(row_of(*op));
  std::sort(rows.begin(), rows.end(),
            [](const OperatorRow& a, const OperatorRow& b) { return a.name < b.name; });
  return rows;
}

bool only_makes_numbers(const Graph& graph, const GraphNode& node) {
  for (const Target& target : node.targets)
    for (const ValueId value : target.values)
      if (value == kNoValue || !graph.values[static_cast<size_t>(value)].number) return false;
  return !node.targets.empty();
}

// Operators of a graph and of the graphs inside it; arithmetic on sizes is none, and what only sets a mode
// around a graph counts as the graph.
void count_calls(const Graph& graph, std::map<std::string, int64_t>& calls) {
  for (const GraphNode& node : graph.nodes) {
    for (const Operand& operand : node.operands)
      if (operand.graph) count_calls(*operand.graph, calls);
    if (!Interpreter::runs_inside(node.op) && !only_makes_numbers(graph, node)) ++calls[node.op];
  }
}

Coverage coverage_of(const std::vector<std::string>& models) {
  Coverage coverage;
  std::map<std::string, CoverageRow> rows;
  for (const std::string& model : models) {
    const Program program = load_program(model);
    std::map<std::string, int64_t> calls;
    count_calls(program.graph, calls);
    bool all_known = true;
    for (const auto& [op, count] : calls) {
      CoverageRow& row = rows[op];
      row.op = op;
      row.known = standard_registry().find(op) != nullptr;
      row.calls += count;
      row.models.push_back(program.name);
      all_known &= row.known;
    }
    ++coverage.models;
    coverage.models_known += all_known;
  }
  for (auto& [op, row] : rows) coverage.operators.push_back(std::move(row));
  std::stable_sort(coverage.operators.begin(), coverage.operators.end(),
                   [](const CoverageRow& a, const CoverageRow& b) {
                     return std::pair(a.known, -a.calls) < std::pair(b.known, -b.calls);
                   });
  return coverage;
}

int repeat(const OpsOptions& options) {
  const CaseSummary summary = repeat_cases(options.cases);
  if (options.json != "-") {
    if (options.verbose) std::cout << cases_differences_text(summary) << "\n";
    std::cout << cases_text(summary);
  }
  if (!options.json.empty()) write_result(options.json, cases_json(summary));
  return summary.totals.all_equal() ? kFine : kFinding;
}

void check_options(const OpsOptions& options) {
  const bool replays = !options.cases.logs.empty();
  if (replays + !options.coverage.empty() + !options.word.empty() > 1)
    fail("give one of WORD, --coverage and --replay");
  if (!replays && (options.cases.only != "*" || options.verbose))
    fail("--only and --verbose belong to --replay");
}

int ops(const OpsOptions& options) {
  check_options(options);
  if (!options.cases.logs.empty()) return repeat(options);
  std::string text, json;
  int exit_code = kFine;
  if (!options.coverage.empty()) {
    const Coverage coverage = coverage_of(options.coverage);
    if (coverage.models_known != coverage.models) exit_code = kFinding;
    text = coverage_text(coverage);
    json = coverage_json(coverage);
  } else {
    const std::vector<OperatorRow> rows = rows_with(options.word);
    if (rows.empty()) fail("no operator has '{}' in its name; 'metaprof ops' lists all", options.word);
    text = operators_text(rows);
    json = operators_json(rows);
  }
  if (!options.json.empty()) write_result(options.json, json);
  if (options.json != "-") std::cout << text;
  return exit_code;
}

}  // namespace

void add_ops_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("ops", kDescription);
  auto options = std::make_shared<OpsOptions>();
  command->add_option("WORD", options->word, "show only operators with this word in their name")
      ->option_text(" ");
  command->add_option("--coverage", options->coverage, "models whose operators to look up")
      ->option_text("MODEL…");
  command->add_option("--replay", options->cases.logs, "recordings of operator cases to repeat and compare")
      ->option_text("LOG.gz…");
  command->add_option("--only", options->cases.only, "of these the cases with such a name, as '*/softmax/*'")
      ->option_text("GLOB");
  command->add_flag("--verbose", options->verbose, "show every difference");
  command->add_option("--json", options->json, "write JSON to FILE; -: to stdout, in place of the text")
      ->option_text("FILE");
  command->callback([options, &exit_code] { exit_code = ops(*options); });
}

}  // namespace metaprof
