#include "reports/plans/checkpoint_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "reports/plans/plan_python.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

// Why nothing holds; empty: something does.
std::string reason_of(const CheckpointReport& report) {
  const std::string budget = human_bytes(report.budget.count);
  if (report.budget < report.state)
    return fmt::format("parameters, buffers and inputs alone take {}, more than the budget of {}",
                       human_bytes(report.state.count), budget);
  if (report.budget < report.elsewhere)
    return fmt::format(
        "parameters, gradients and the optimizer's step take {} when nothing is kept for backward, more than "
        "the "
        "budget of {}: recomputation cannot help",
        human_bytes(report.elsewhere.count), budget);
  if (const LargestCall& call = report.largest_call; report.budget < call.needs)
    return fmt::format(
        "one call of {}{} takes {} with its operands and what is alive then in every plan, more than the "
        "budget of {}: recomputation cannot help",
        call.op, call.module.empty() ? "" : " in " + shown(call.module, kMostCharactersOfName),
        human_bytes(call.needs.count), budget);
  if (report.best().holds) return "";
  const std::string least = human_bytes(report.best().allocated.count);
  if (!report.candidates)
    return fmt::format(
        "no module keeps anything that could be recomputed; the step needs {}, more than the "
        "budget of {}",
        least, budget);
  return fmt::format("no plan stays within {}; the smallest peak that any plan reached is {}", budget, least);
}

std::string percent(double part, double whole) {
  return whole == 0 ? "0 %" : fmt::format("{:.1f} %", 100 * part / whole);
}

std::string figures_table(const CheckpointReport& report) {
  TextTable table;
  table.column("strategy", TextTable::Align::left);
  for (const char* title : {"allocated", "reserved", "recomputed FLOPs", "time"}) table.column(title);
  const bool has_bus = report.uses_bus();
  if (has_bus) table.column("over the bus");
  table.column("holds", TextTable::Align::left);
  const bool has_gap =
      std::ranges::any_of(report.rows, [](const CheckpointRow& row) { return row.gap.has_value(); });
  if (has_gap) table.column("gap");
  const auto add = [&](const CheckpointRow& row) {
    std::vector<std::string> cells = {row.strategy, human_bytes(row.allocated.count),
                                      human_bytes(row.reserved.count),
                                      percent(double(row.recompute_flops.count), double(report.flops.count)),
                                      percent(row.recompute_seconds, report.seconds)};
    if (has_bus) cells.push_back(human_bytes(row.over_bus.count));
    cells.emplace_back(row.holds ? "yes" : "no");
    if (has_gap) cells.push_back(row.gap ? percent(*row.gap, 1) : "–");
    table.row(cells);
  };
  add(report.plain);
  for (const CheckpointRow& row : report.rows) add(row);
  return table.text();
}

std::string recomputed_table(const CheckpointRow& row) {
  TextTable table;
  table.column("modules", TextTable::Align::left);
  for (const char* title : {"number", "of", "not kept", "FLOPs again"}) table.column(title);
  table.column("type", TextTable::Align::left);
  for (const RecomputedRow& one : row.recomputed)
    table.row({shown(fmt::format("{}", fmt::join(one.patterns, " ")), kMostCharactersOfName),
               std::to_string(one.count), std::to_string(one.of), human_bytes(one.saved.count),
               fmt::format("{:.3g}", double(one.flops.count)),
               shown(one.type.substr(one.type.rfind('.') + 1), kMostCharactersOfName)});
  return table.text();
}

Json row_json(const CheckpointRow& row) {
  Json modules = Json::array();
  for (const RecomputedRow& one : row.recomputed)
    modules.push_back({{"type", one.type},
                       {"checkpoint", one.patterns},
                       {"number", one.count},
                       {"of", one.of},
                       {"saved_bytes", one.saved.count},
                       {"recompute_flops", one.flops.count}});
  return {{"strategy", row.strategy},
          {"peak", row.allocated.count},
          {"reserved", row.reserved.count},
          {"recompute_flops", row.recompute_flops.count},
          {"recompute_seconds", row.recompute_seconds},
          {"bus_bytes", row.over_bus.count},
          {"holds", row.holds},
          {"gap", row.gap ? Json(*row.gap) : Json()},
          {"checkpoint", row.patterns},
          {"modules", modules}};
}

}  // namespace

std::string checkpoint_text(const CheckpointReport& report) {
  const std::string reason = reason_of(report), model = shown(report.model, kMostCharactersOfName);
  if (!reason.empty()) return fmt::format("IMPOSSIBLE {}: {}\n", model, reason);
  const CheckpointRow& best = report.best();
  std::string text = fmt::format("HOLDS {}: {} of a budget of {}", model, human_bytes(best.allocated.count),
                                 human_bytes(report.budget.count));
  text += best.patterns.empty() ? ", without recomputation\n\n"
                                : fmt::format(" with --checkpoint '{}'\n\n", fmt::join(best.patterns, " "));
  text += figures_table(report);
  if (!best.recomputed.empty()) text += "\n" + recomputed_table(best);
  return text;
}

std::string checkpoint_json(const CheckpointReport& report) {
  const CheckpointRow& best = report.best();
  const std::string reason = reason_of(report);
  Json json = {{"schema", "metaprof.plan"},
               {"schema_version", 1},
               {"model", report.model},
               {"device", report.device},
               {"budget", report.budget.count},
               {"state_bytes", report.state.count},
               {"least_bytes", report.least().count}};
  json.update(row_json(best));
  json["reason"] = reason.empty() ? Json() : Json(reason);
  json["plain"] = {{"peak", report.plain.allocated.count},
                   {"reserved", report.plain.reserved.count},
                   {"flops", report.flops.count},
                   {"seconds", report.seconds}};
  json["strategies"] = Json::array();
  for (const CheckpointRow& row : report.rows) json["strategies"].push_back(row_json(row));
  if (!report.curve.empty()) {
    json["curve"] = Json::array();
    for (const CheckpointRow& row : report.curve) json["curve"].push_back(row_json(row));
  }
  json["runs"] = report.runs;
  return json_text(json);
}

std::string plan_costs_json(const CheckpointReport& report) {
  Json classes = Json::array();
  for (const CandidateRow& row : report.costs) {
    Json calls = Json::array();
    for (const CandidateCall& call : row.calls)
      calls.push_back({{"op", call.op},
                       {"number", call.number},
                       {"bytes", call.bytes.count},
                       {"flops", call.flops.count},
                       {"seconds", call.seconds}});
    classes.push_back({{"type", row.type},
                       {"modules", row.modules},
                       {"in_list", row.in_list},
                       {"saved_bytes", row.saved.count},
                       {"input_bytes", row.input.count},
                       {"flops", row.flops.count},
                       {"seconds", row.seconds},
                       {"calls", calls}});
  }
  const Json json = {{"schema", "metaprof.plan_costs"},
                     {"schema_version", 1},
                     {"model", report.model},
                     {"device", report.device},
                     {"peak", report.plain.allocated.count},
                     {"flops", report.flops.count},
                     {"seconds", report.seconds},
                     {"classes", classes}};
  return json_text(json);
}

std::string checkpoint_python(const CheckpointReport& report) {
  const CheckpointRow& best = report.best();
  return plan_python(
      best.patterns,
      fmt::format("{} on {}, strategy {}: a peak of {} B, {} a budget of {} B; {} FLOPs recomputed.",
                  report.model, report.device, best.strategy, best.allocated.count,
                  best.holds ? "within" : "more than", report.budget.count, best.recompute_flops.count));
}

}  // namespace metaprof
