#include "reports/search/grid_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "reports/sections/input_json.h"
#include "reports/sections/option_json.h"
#include "reports/tables/figure_table.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

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

// The answer: for one row what it is, else how many rows have one.
std::string first_line_of_fit(const FitReport& report) {
  const auto fitting =
      std::ranges::count_if(report.rows, [](const FitRow& row) { return row.largest.has_value(); });
  if (report.rows.size() != 1)
    return fmt::format("{}: {} of {} rows\n", fitting > 0 ? "FITS" : "DOES NOT FIT", fitting,
                       report.rows.size());
  const FitRow& row = report.rows[0];
  const std::string device = shown_value(row.options, "device");
  if (!row.largest)
    return fmt::format("DOES NOT FIT {}: not even {} 1, which needs {} of {}\n", device, report.dimension,
                       human_bytes(row.reserved.count), human_bytes(row.memory.count));
  return fmt::format("FITS {}: {} {}{}\n", device, report.dimension, *row.largest,
                     row.unbounded ? " and more" : " at most");
}

std::string plans_of_rows(const FitReport& report) {
  std::string text;
  for (const FitRow& row : report.rows)
    if (!row.checkpoint.empty() && row.largest)
      text += fmt::format("\n{} {} fits with --checkpoint '{}'\n", report.dimension, *row.largest,
                          fmt::join(row.checkpoint, " "));
  return text;
}

}  // namespace

std::string fit_text(const FitReport& report, size_t width) {
  TextTable table;
  for (const std::string& name : report.columns) table.column(name, TextTable::Align::left);
  table.column("largest " + report.dimension);
  if (report.planned) table.column("recomputed FLOPs");
  for (const char* title : {"allocated", "reserved", "of"}) table.optional_column(title);
  for (const FitRow& row : report.rows) {
    std::vector<std::string> cells;
    for (const std::string& name : report.columns) cells.push_back(shown_value(row.options, name));
    cells.push_back(row.largest ? fmt::format("{}{}", row.unbounded ? "≥ " : "", *row.largest) : "none");
    if (report.planned) cells.push_back(fmt::format("{:.1f} %", 100 * row.recomputed));
    for (const Bytes bytes : {row.allocated, row.reserved, row.memory})
      cells.push_back(human_bytes(bytes.count));
    table.row(std::move(cells));
  }
  return first_line_of_fit(report) +
         fmt::format("{}: the largest {} of which a {} fits\n", report.model, report.dimension,
                     report.trains ? "training step" : "forward") +
         (report.inputs.empty() ? "" : fmt::format("inputs {}\n", report.inputs)) +
         fmt::format(
             "of: the device's memory less what lies outside the allocator (--context) and a margin of {:g} "
             "% "
             "(--margin)\n\n{}",
             100 * report.margin, table.text(0, width)) +
         plans_of_rows(report);
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
                    {"runs", row.runs},
                    {"checkpoint", row.checkpoint},
                    {"recomputed_share", row.recomputed},
                    {"inputs", inputs_json(row.inputs)}});
  return json_text({{"schema", "metaprof.fit"},
                    {"schema_version", 1},
                    {"model", report.model},
                    {"dimension", report.dimension},
                    {"margin", report.margin},
                    {"rows", rows},
                    {"notes", report.notes}});
}

namespace {

int64_t flops_of(const SweepRow& row) { return row.flops_forward + row.flops_backward; }

// What two runs have in common that do the same work.
std::string work_of(const SweepRow& row) {
  std::string work;
  for (const char* same : {"device", "batch", "sequence", "accumulate", "set"})
    work += shown_value(row.options, same) + '\n';
  return work;
}

// By row: whether another run of the same work takes less of memory or FLOPs and no more of the other. Of a run's
// work, those that need less come first, so the fewest FLOPs among them tell.
std::vector<bool> beaten_rows(const SweepReport& report) {
  std::map<std::string, std::vector<size_t>> by_work;
  for (size_t i = 0; i < report.rows.size(); ++i)
    if (report.rows[i].error.empty() && report.rows[i].needed) by_work[work_of(report.rows[i])].push_back(i);
  std::vector<bool> beaten(report.rows.size());
  const auto costs = [&](size_t i) { return std::pair(*report.rows[i].needed, flops_of(report.rows[i])); };
  for (auto& [work, rows] : by_work) {
    std::ranges::sort(rows, {}, costs);
    std::pair best(std::numeric_limits<int64_t>::max(),
                   std::numeric_limits<int64_t>::max());  // of fewest FLOPs
    for (const size_t row : rows) {
      const auto cost = costs(row);
      beaten[row] = best.second <= cost.second && best != cost;
      if (cost.second < best.second) best = cost;
    }
  }
  return beaten;
}

std::string change(int64_t first, int64_t now) {
  if (first == 0 || now == 0 || first == now) return "";
  return fmt::format("{:+.0f} %", 100.0 * static_cast<double>(now - first) / static_cast<double>(first));
}

}  // namespace

std::string sweep_text(const SweepReport& report, size_t width) {
  TextTable table;
  for (const std::string& name : report.differing) table.column(name, TextTable::Align::left);
  for (const char* title : {"needs", "", "FLOPs", ""}) table.column(title);
  table.column("fits", TextTable::Align::left);
  const auto ran = std::ranges::find_if(report.rows, [](const SweepRow& row) { return row.error.empty(); });
  const std::vector<bool> beaten = beaten_rows(report);
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const SweepRow& row = report.rows[i];
    std::vector<std::string> cells;
    for (const std::string& name : report.differing) {
      const std::string value = shown_value(row.options, name);
      cells.push_back(value.empty() ? "-" : value);
    }
    if (!row.error.empty()) {
      cells.insert(cells.end(), {"", "", "", "", shown(row.error, 70)});
    } else {
      const Unit unit = unit_for_flops(flops_of(row));
      cells.insert(cells.end(), {row.needed ? human_bytes(*row.needed) : "too much",
                                 change(ran->needed.value_or(0), row.needed.value_or(0)),
                                 fmt::format("{} {}", in_unit(flops_of(row), unit), unit.name),
                                 change(flops_of(*ran), flops_of(row)),
                                 fmt::format("{}{}", row.fits ? "yes" : "no", beaten[i] ? "" : " *")});
    }
    table.row(std::move(cells));
  }
  const std::string inputs =
      ran == report.rows.end() ? "" : inputs_text(ran->inputs, report.rows.back().inputs, "…");
  return fmt::format(
      "{}: {} of {} fit; needs: reserved at most; percents: to the first row; *: no other of the same work "
      "takes less memory or fewer FLOPs\n{}\n{}",
      report.model, std::ranges::count_if(report.rows, &SweepRow::fits), report.rows.size(),
      inputs.empty() ? "" : "inputs " + inputs + "\n", table.text(0, width));
}

std::string sweep_csv(const SweepReport& report) {
  std::string text;
  for (const std::string& name : report.columns) text += name + ",";
  for (const SweepFigure& figure : kFigures) text += std::string(figure.name) + ",";
  text += "needed_bytes,fits,error\n";
  for (const SweepRow& row : report.rows) {
    for (const std::string& name : report.columns) text += csv_field(shown_value(row.options, name)) + ",";
    for (const SweepFigure& figure : kFigures)
      text += row.error.empty() ? fmt::format("{},", row.*figure.value) : ",";
    text += fmt::format("{},{},{}\n", row.needed ? std::to_string(*row.needed) : "",
                        row.error.empty() ? (row.fits ? "true" : "false") : "", csv_field(row.error));
  }
  return text;
}

std::string sweep_json(const SweepReport& report) {
  Json rows = Json::array();
  for (const SweepRow& row : report.rows) {
    Json json = {{"options", options_json(row.options)}, {"inputs", inputs_json(row.inputs)}};
    for (const SweepFigure& figure : kFigures)
      json[figure.name] = row.error.empty() ? Json(row.*figure.value) : Json(nullptr);
    json["needed_bytes"] = row.needed ? Json(*row.needed) : Json(nullptr);
    json["fits"] = row.error.empty() ? Json(row.fits) : Json(nullptr);
    json["error"] = row.error.empty() ? Json(nullptr) : Json(row.error);
    rows.push_back(json);
  }
  return json_text({{"schema", "metaprof.sweep"},
                    {"schema_version", 1},
                    {"model", report.model},
                    {"rows", rows},
                    {"notes", report.notes}});
}

}  // namespace metaprof
