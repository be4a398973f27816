#include "reports/checks/check_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "reports/checks/check_findings.h"
#include "reports/checks/phase_table.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

// In every phase.
bool is_equal(const CheckResult& result) {
  return result.phases > 0 && result.exact_phases == result.phases &&
         result.exact_reserved_phases == result.phases;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json row_json(const CheckResult& result, const CheckRow& row) {
  Json json = {{"recording", result.id}};
  const bool whole_run = result.phases == 0;  // a snapshot
  json["phase"] = whole_run ? Json(nullptr) : Json(to_string(row.part.phase));
  json["step"] = whole_run || row.part.phase == Phase::setup ? Json(nullptr) : Json(row.part.step);
  if (row.part.micro >= 0) json["micro"] = row.part.micro;
  json["field"] = row.field;
  json["recorded"] = or_null(row.recorded);
  json["estimated"] = or_null(row.estimated);
  json["error"] = or_null(row.error());
  return json;
}

Json summary_json(const CheckResult& result, double tolerance) {
  Json json = {{"recording", result.id},
               {"file", result.recording},
               {"peak_allocated_error", or_null(result.peak_allocated.error())},
               {"peak_requested_error", or_null(result.peak_requested.error())},
               {"peak_reserved_error", or_null(result.peak_reserved.error())},
               {"exact_phases", result.exact_phases},
               {"exact_reserved_phases", result.exact_reserved_phases},
               {"phases", result.phases},
               {"within_tolerance", result.within(tolerance)}};
  json["on"] = to_string(result.on);
  json["workspaces"] = Json::array();
  for (const WorkspaceRow& row : result.workspaces)
    json["workspaces"].push_back(
        {{"op", row.op}, {"bytes", row.bytes}, {"count", row.count}, {"source", row.source}});
  json["workspace_note"] = result.workspace_note.empty() ? Json(nullptr) : Json(result.workspace_note);
  json["first_difference"] = nullptr;
  if (const auto& difference = result.first_difference)
    json["first_difference"] = {
        {"line", difference->line}, {"recorded", difference->recorded}, {"estimated", difference->estimated}};
  return json;
}

std::string percent(const std::optional<double>& error) {
  if (!error) return "-";
  return *error == 0 ? "0" : fmt::format("{:+.3f} %", 100 * *error);
}

struct Tally {
  size_t exact = 0, in_phases = 0, exact_reserved = 0, measured_reserved = 0;
  double worst = 0, worst_reserved = 0, sum_reserved = 0;
};

Tally tally_of(const std::vector<CheckResult>& results) {
  Tally tally;
  for (const CheckResult& result : results) {
    if (result.phases > 0) ++tally.in_phases, tally.exact += result.exact_phases == result.phases;
    if (const auto error = result.decisive()[0]->error())
      tally.worst = std::max(tally.worst, std::abs(*error));
    const auto error = result.peak_reserved.error();
    if (!error) continue;
    ++tally.measured_reserved;
    tally.exact_reserved += *error == 0;
    tally.worst_reserved = std::max(tally.worst_reserved, std::abs(*error));
    tally.sum_reserved += std::abs(*error);
  }
  return tally;
}

std::string measurements_text(const std::vector<CheckResult>& results, double tolerance) {
  TextTable table;
  table.column("recording", TextTable::Align::left);
  for (const char* title : {"allocated", "estimated", "error", "reserved", "estimated", "error", "phases"})
    table.column(title);
  table.column("first difference", TextTable::Align::left);
  for (const CheckResult& result : results) {
    const CheckRow &first = *result.decisive()[0], &reserved = result.peak_reserved;
    const char* kind = &first == &result.peak_requested ? " requested" : "";
    table.row({result.id, number_text(first.recorded) + kind, number_text(first.estimated),
               percent(first.error()), number_text(reserved.recorded), number_text(reserved.estimated),
               percent(reserved.error()),
               result.phases == 0 ? "" : fmt::format("{}/{}", result.exact_phases, result.phases),
               result.first_difference ? difference_text(*result.first_difference) : ""});
  }
  const Tally tally = tally_of(results);
  const auto within = static_cast<size_t>(
      std::ranges::count_if(results, [&](const CheckResult& result) { return result.within(tolerance); }));
  std::string text = table.text();
  text += "\n";
  if (tally.in_phases > 0)
    text += fmt::format("allocated and requested bytes of every phase equal: {} of {}; ", tally.exact,
                        tally.in_phases);
  text += fmt::format("worst peak error {:.3f} %\n", 100 * tally.worst);
  if (tally.measured_reserved > 0)
    text += fmt::format("peak of reserved bytes equal: {} of {}; mean error {:.3f} %, worst {:.3f} %\n",
                        tally.exact_reserved, tally.measured_reserved,
                        100 * tally.sum_reserved / static_cast<double>(tally.measured_reserved),
                        100 * tally.worst_reserved);
  return text + fmt::format("within {:g} %: {} of {}\n", 100 * tolerance, within, results.size());
}

// Measurements of one model with the same estimate stand in one table.
std::vector<std::vector<const CheckResult*>> tables_of(const CheckReport& report) {
  std::vector<std::vector<const CheckResult*>> tables;
  if (!report.of_one_model) return tables;
  const auto same_estimate = [](const CheckResult& a, const CheckResult& b) {
    return std::ranges::equal(a.rows, b.rows, [](const CheckRow& one, const CheckRow& other) {
      return one.part == other.part && one.field == other.field && one.estimated == other.estimated;
    });
  };
  for (const CheckResult& result : report.measurements) {
    if (result.phases == 0) continue;  // a snapshot has peaks alone
    const auto found =
        std::ranges::find_if(tables, [&](const auto& table) { return same_estimate(*table[0], result); });
    if (found == tables.end())
      tables.push_back({&result});
    else
      found->push_back(&result);
  }
  return tables;
}

std::string source_text(const std::string& source) {
  return source == "cudnn" ? "asked of cuDNN" : source == "table" ? "table" : "rule";
}

std::string workspaces_text(const CheckResult& result) {
  std::string text;
  if (!result.workspaces.empty()) {
    TextTable table;
    table.column("workspaces of libraries", TextTable::Align::left);
    table.column("bytes");
    table.column("times");
    table.column("size by", TextTable::Align::left);
    for (const WorkspaceRow& row : result.workspaces)
      table.row(
          {row.op, fmt::format("{}", row.bytes), fmt::format("{}", row.count), source_text(row.source)});
    text = "\n" + table.text();
  }
  return result.workspace_note.empty() ? text : text + result.workspace_note + "\n";
}

std::string tables_text(const CheckReport& report) {
  std::string text;
  for (const auto& table : tables_of(report)) {
    text += "\n" + phase_table_text(table);
    for (const CheckResult* result : table)
      if (result->first_difference)
        text += fmt::format("{}: {}the first request that differs: {}\n", result->id,
                            is_equal(*result) ? "every phase is equal, in another order of requests; " : "",
                            difference_text(*result->first_difference));
    text += workspaces_text(*table[0]);
  }
  return text;
}

std::string baseline_text(const BaselineResult& result) {
  TextTable table;
  table.column(fmt::format("against {}", result.file), TextTable::Align::left);
  for (const char* title : {"before", "now", "growth"}) table.column(title);
  for (const BaselineRow& row : result.rows)
    table.row({std::string(title_of(row.figure)), fmt::format("{}", row.before), fmt::format("{}", row.after),
               percent(row.growth())});
  std::string text = table.text();
  if (result.model_before != result.model_after)
    text += fmt::format("the baseline is of {}, this is {}; --accept makes a baseline of this one\n",
                        shown(result.model_before, kMostCharactersOfName),
                        shown(result.model_after, kMostCharactersOfName));
  const std::string changes = changes_text(result);
  return text + (changes.empty() ? "" : "most changed: " + changes + "\n");
}

template <class Function>  // Function(CheckFinding)
void for_each_finding(const CheckReport& report, Function function) {
  for (const CheckResult& result : report.measurements)
    for (const CheckFinding& finding : findings_of(result, report.tolerance)) function(finding);
  for (const BaselineResult& result : report.baselines)
    for (const CheckFinding& finding : findings_of(result, report.tolerance)) function(finding);
}

Json change_json(const std::optional<BytesChange>& change) {
  if (!change) return nullptr;
  return {{"name", change->name}, {"before", change->before}, {"after", change->after}};
}

Json baseline_json(const BaselineResult& result, double tolerance) {
  const auto name_of = [](BaselineRow::Figure figure) {
    constexpr const char* kNames[] = {"peak_allocated", "peak_requested", "peak_reserved", "saved", "flops"};
    return kNames[static_cast<size_t>(figure)];
  };
  Json figures = Json::object();
  for (const BaselineRow& row : result.rows)
    figures[name_of(row.figure)] = {
        {"before", row.before}, {"after", row.after}, {"growth", or_null(row.growth())}};
  return {{"file", result.file},
          {"model_before", result.model_before},
          {"model_after", result.model_after},
          {"figures", figures},
          {"saved_by_module", change_json(result.saved_module)},
          {"saved_by_node", change_json(result.saved_node)},
          {"peak_by_category", change_json(result.peak_category)},
          {"peak_op", result.peak_op.empty() ? Json(nullptr) : Json(result.peak_op)},
          {"peak_module", result.peak_module},
          {"out_of_memory_since", result.out_of_memory_since},
          {"within_tolerance", result.within(tolerance)}};
}

}  // namespace

std::string check_text(const CheckReport& report) {
  std::string text;
  if (!report.measurements.empty())
    text = measurements_text(report.measurements, report.tolerance) + tables_text(report);
  for (const BaselineResult& result : report.baselines)
    text += (text.empty() ? "" : "\n") + baseline_text(result);
  std::string findings;
  for_each_finding(report,
                   [&](const CheckFinding& finding) { findings += "exceeded: " + finding.message + "\n"; });
  return findings.empty() ? text : text + "\n" + findings;
}

std::string check_json(const CheckReport& report) {
  Json rows = Json::array(), summary = Json::array(), baselines = Json::array(), findings = Json::array();
  for (const CheckResult& result : report.measurements) {
    for (const CheckRow& row : result.rows) rows.push_back(row_json(result, row));
    summary.push_back(summary_json(result, report.tolerance));
  }
  for (const BaselineResult& result : report.baselines)
    baselines.push_back(baseline_json(result, report.tolerance));
  for_each_finding(report, [&](const CheckFinding& finding) {
    findings.push_back({{"rule", check_rules()[finding.rule].id}, {"message", finding.message}});
  });
  Json tables = Json::array();
  for (const auto& table : tables_of(report)) tables.push_back(phase_table_json(table));
  const Json json = {{"schema", "metaprof.check"},
                     {"schema_version", 1},
                     {"tolerance", report.tolerance},
                     {"rows", rows},
                     {"summary", summary},
                     {"tables", tables},
                     {"baselines", baselines},
                     {"findings", findings}};
  return json_text(json);
}

}  // namespace metaprof
