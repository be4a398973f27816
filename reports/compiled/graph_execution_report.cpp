#include "reports/compiled/graph_execution_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "reports/sections/execution_figures.h"
#include "reports/sections/execution_json.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using GraphJson = nlohmann::ordered_json;

std::string passes_table(const GraphExecutionReport& report) {
  TextTable table;
  table.column("phase");
  table.column("pass", TextTable::Align::left);
  for (const char* title : {"nodes before", "nodes after", "ms"}) table.column(title);
  for (const GraphPassRow& row : report.passes)
    table.row({row.phase == 0 ? "end" : std::to_string(row.phase), row.pass, std::to_string(row.nodes_before),
               std::to_string(row.nodes_after), fmt::format("{:.2f}", row.seconds * 1e3)});
  return table.text();
}

std::string plans_table(const GraphExecutionReport& report) {
  TextTable table;
  table.column("plan", TextTable::Align::left);
  table.column("nodes");
  table.column("ms");
  table.column("for", TextTable::Align::left);
  for (const GraphPlanRow& row : report.plans)
    table.row({row.name, std::to_string(row.nodes), fmt::format("{:.2f}", row.seconds * 1e3),
               shown(row.arguments, 100)});
  return table.text();
}

}  // namespace

std::string graph_execution_text(const GraphExecutionReport& report) {
  const GraphCounters& counters = report.counters;
  std::string text = fmt::format("{} on {}\n\n", shown(report.model, kMostCharactersOfName), report.device);
  text += passes_table(report) + "\n";
  if (!report.plans.empty()) text += plans_table(report);
  text += fmt::format("executors: {}, runs: {}, plans found: {}, plans compiled: {}\n\n", counters.executors,
                      counters.invocations, counters.hits, counters.misses);
  return text + comparison_text(report.comparison);
}

std::string pass_texts(const GraphExecutionReport& report, const std::vector<std::string>& only) {
  std::string text;
  for (const GraphPassRow& row : report.passes) {
    if (!only.empty() && std::ranges::find(only, row.pass) == only.end()) continue;
    if (row.before == row.after)
      text += fmt::format("{}: nothing changes\n\n", row.pass);
    else
      text += fmt::format("before {}\n{}after {}\n{}\n", row.pass, row.before, row.pass, row.after);
  }
  return text;
}

std::string graph_execution_json(const GraphExecutionReport& report) {
  GraphJson passes = GraphJson::array(), plans = GraphJson::array();
  for (const GraphPassRow& row : report.passes) {
    GraphJson& json = passes.emplace_back(GraphJson{{"name", row.pass},
                                                    {"phase", row.phase},
                                                    {"nodes_before", row.nodes_before},
                                                    {"nodes_after", row.nodes_after},
                                                    {"seconds", row.seconds}});
    if (row.before.empty()) continue;
    json["before"] = row.before;
    json["after"] = row.after;
  }
  for (const GraphPlanRow& row : report.plans)
    plans.push_back(
        {{"name", row.name}, {"for", row.arguments}, {"nodes", row.nodes}, {"seconds", row.seconds}});
  const GraphJson json = {{"schema", "metaprof.graph"},
                          {"schema_version", 1},
                          {"model", report.model},
                          {"device", report.device},
                          {"passes", passes},
                          {"plans", plans},
                          {"counters",
                           {{"executors", report.counters.executors},
                            {"invocations", report.counters.invocations},
                            {"hits", report.counters.hits},
                            {"misses", report.counters.misses}}},
                          {"execution", comparison_json(report.comparison)}};
  return json_text(json);
}

}  // namespace metaprof
