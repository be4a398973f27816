#include "reports/sections/advice_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "reports/sections/verdict.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

std::string change_in_percent(int64_t before, int64_t after) {
  if (before == after || before == 0) return "";
  return fmt::format("{:+.0f} %", 100.0 * static_cast<double>(after - before) / static_cast<double>(before));
}

std::string first_line(const AdviceReport& report) {
  const std::string line = verdict_line({.device = report.device,
                                         .fits = report.base.fits,
                                         .reserved = report.base.reserved,
                                         .outside = report.outside,
                                         .margin = report.margin,
                                         .memory = report.memory});
  if (report.base.fits) return line + "\n";
  if (report.best.fits) return line + ". Cheapest fix: " + cheapest_fix(report) + "\n";
  return line +
         fmt::format(". Nothing tried makes it fit; the least is {} with {}. Other batches: metaprof fit\n",
                     human_bytes(report.best.reserved.count), words_of(report.best));
}

// What a reader of the table cannot know from the options' names.
std::string notes_on(const AdviceReport& report) {
  const auto any = [&](std::string_view part) {
    return std::ranges::any_of(report.rows, [&](const AdviceRow& row) {
      return std::ranges::any_of(
          row.changes, [&](const auto& change) { return change.second.find(part) != std::string::npos; });
    });
  };
  std::string text;
  if (any("{>host}"))
    text +=
        "{>host}: what is saved for backward waits in the host's memory; the copies are no FLOPs, and take "
        "time\n";
  if (any("adamw-8bit"))
    text += "adamw-8bit: AdamW8bit of bitsandbytes, whose numbers are not those of AdamW\n";
  if (any("r=8"))
    text += "--lora: adapters are trained beside frozen weights (metaprof rent compares both on all cards)\n";
  return text.empty() ? text : "\n" + text;
}

Json row_json(const AdviceRow& row) {
  Json changes = Json::object();
  for (const auto& [name, value] : row.changes) changes[name] = value;
  return {{"changes", changes},
          {"peak", row.allocated.count},
          {"reserved", row.reserved.count},
          {"flops", row.flops.count},
          {"fits", row.fits}};
}

}  // namespace

std::string words_of(const AdviceRow& row) {
  std::string text;
  for (const auto& [name, value] : row.changes) {
    std::string option = "--" + name;
    std::ranges::replace(option, '_', '-');
    const bool quoted = value.find_first_of("*?{>") != std::string::npos;
    text += (text.empty() ? "" : " ") + option;
    if (value != "true") text += quoted ? " '" + value + "'" : " " + value;
  }
  return text.empty() ? "(as it is)" : text;
}

std::string cheapest_fix(const AdviceReport& report) {
  if (report.base.fits || !report.best.fits) return "";
  return fmt::format("{} → {}", words_of(report.best), human_bytes(report.best.reserved.count));
}

std::string advice_text(const AdviceReport& report, size_t width) {
  TextTable table;
  table.column("change", TextTable::Align::left);
  for (const char* title : {"allocated", "reserved", "", "FLOPs"}) table.column(title);
  table.column("fits", TextTable::Align::left);
  const auto add = [&](const AdviceRow& row) {
    table.row({words_of(row), human_bytes(row.allocated.count), human_bytes(row.reserved.count),
               change_in_percent(report.base.reserved.count, row.reserved.count),
               change_in_percent(report.base.flops.count, row.flops.count), row.fits ? "yes" : "no"});
  };
  add(report.base);
  for (const AdviceRow& row : report.rows) add(row);
  if (report.best.changes.size() > 1 && !report.base.fits) add(report.best);
  return first_line(report) + report.model + "\n" +
         (report.inputs.empty() ? "" : "inputs " + report.inputs + "\n") + "\n" + table.text(0, width) +
         notes_on(report);
}

std::string advice_json(const AdviceReport& report) {
  Json rows = Json::array();
  for (const AdviceRow& row : report.rows) rows.push_back(row_json(row));
  const Json json = {{"schema", "metaprof.advise"},
                     {"schema_version", 1},
                     {"model", report.model},
                     {"device", report.device},
                     {"inputs", report.inputs},
                     {"available_bytes", report.available.count},
                     {"outside_bytes", report.outside.count},
                     {"memory_bytes", report.memory.count},
                     {"base", row_json(report.base)},
                     {"rows", rows},
                     {"best", row_json(report.best)}};
  return json_text(json);
}

}  // namespace metaprof
