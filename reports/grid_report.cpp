#include "reports/grid_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/figure_table.h"
#include "reports/format.h"
#include "reports/option_json.h"
#include "reports/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json options_json(const ShownOptions& options) {
  Json json = Json::object();
  for (const auto& [name, value] : options) json[name] = option_json(value);
  return json;
}

std::string shown_value(const ShownOptions& options, const std::string& column) {
  const auto found = std::ranges::find(options, column, &ShownOptions::value_type::first);
  return found == options.end() ? "" : to_text(found->second);
}

struct SweepFigure {
  const char* name;
  int64_t SweepRow::*value;
};
constexpr SweepFigure kFigures[] = {
    {"parameter_bytes", &SweepRow::parameter_bytes}, {"saved_bytes", &SweepRow::saved_bytes},
    {"peak_allocated_bytes", &SweepRow::allocated},  {"peak_requested_bytes", &SweepRow::requested},
    {"peak_reserved_bytes", &SweepRow::reserved},    {"flops_forward", &SweepRow::flops_forward},
    {"flops_backward", &SweepRow::flops_backward},   {"flops_recompute", &SweepRow::flops_recompute}};

}  // namespace

bool FitReport::all_fit() const {
  return std::ranges::all_of(rows, [](const FitRow& row) { return row.largest.has_value(); });
}

bool SweepReport::all_fit() const {
  return std::ranges::all_of(rows, [](const SweepRow& row) { return row.fits; });
}

std::string fit_text(const FitReport& report) {
  TextTable table;
  for (const std::string& name : report.columns) table.column(name, TextTable::Align::left);
  table.column("largest " + report.dimension);
  for (const char* title : {"allocated", "reserved", "of"}) table.column(title);
  for (const FitRow& row : report.rows) {
    std::vector<std::string> cells;
    for (const std::string& name : report.columns) cells.push_back(shown_value(row.options, name));
    cells.push_back(row.largest ? fmt::format("{}{}", row.unbounded ? "≥ " : "", *row.largest) : "none");
    for (const Bytes bytes : {row.allocated, row.reserved, row.memory})
      cells.push_back(human_bytes(bytes.count));
    table.row(std::move(cells));
  }
  return fmt::format(
      "{}: the largest {} of which a {} fits\n"
      "of: the device's memory less what lies outside the allocator (--context) and a margin of {:g} % "
      "(--margin)\n\n{}",
      report.model, report.dimension, report.trains ? "training step" : "forward", 100 * report.margin,
      table.text());
}

std::string fit_json(const FitReport& report) {
  Json rows = Json::array();
  for (const FitRow& row : report.rows)
    rows.push_back({{"options", options_json(row.options)},
                    {"largest", row.largest ? Json(*row.largest) : Json(nullptr)},
                    {"unbounded", row.unbounded},
                    {"peak_allocated_bytes", row.allocated.count},
                    {"peak_reserved_bytes", row.reserved.count},
                    {"memory_bytes", row.memory.count},
                    {"runs", row.runs}});
  return dump({{"schema", "metaprof.fit"},
               {"schema_version", 1},
               {"model", report.model},
               {"dimension", report.dimension},
               {"margin", report.margin},
               {"rows", rows},
               {"notes", report.notes}});
}

std::string sweep_csv(const SweepReport& report) {
  std::string text;
  for (const std::string& name : report.columns) text += name + ",";
  for (const SweepFigure& figure : kFigures) text += std::string(figure.name) + ",";
  text += "fits,error\n";
  for (const SweepRow& row : report.rows) {
    for (const std::string& name : report.columns) text += csv_field(shown_value(row.options, name)) + ",";
    for (const SweepFigure& figure : kFigures)
      text += row.error.empty() ? fmt::format("{},", row.*figure.value) : ",";
    text +=
        fmt::format("{},{}\n", row.error.empty() ? (row.fits ? "true" : "false") : "", csv_field(row.error));
  }
  return text;
}

std::string sweep_json(const SweepReport& report) {
  Json rows = Json::array();
  for (const SweepRow& row : report.rows) {
    Json json = {{"options", options_json(row.options)}};
    for (const SweepFigure& figure : kFigures)
      json[figure.name] = row.error.empty() ? Json(row.*figure.value) : Json(nullptr);
    json["fits"] = row.error.empty() ? Json(row.fits) : Json(nullptr);
    json["error"] = row.error.empty() ? Json(nullptr) : Json(row.error);
    rows.push_back(json);
  }
  return dump({{"schema", "metaprof.sweep"},
               {"schema_version", 1},
               {"model", report.model},
               {"rows", rows},
               {"notes", report.notes}});
}

}  // namespace metaprof
