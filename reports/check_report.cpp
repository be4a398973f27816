#include "reports/check_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/format.h"
#include "reports/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json row_json(const CheckResult& result, const CheckRow& row) {
  Json json = {{"recording", result.id}, {"phase", to_string(row.part.phase)}};
  json["step"] = row.part.phase == Phase::setup ? Json(nullptr) : Json(row.part.step);
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
  json["first_difference"] = nullptr;
  if (const auto& difference = result.first_difference)
    json["first_difference"] = {
        {"line", difference->line}, {"recorded", difference->recorded}, {"estimated", difference->estimated}};
  return json;
}

std::string number(const std::optional<int64_t>& value) { return value ? fmt::format("{}", *value) : "-"; }

std::string percent(const std::optional<double>& error) {
  if (!error) return "-";
  return *error == 0 ? "0" : fmt::format("{:+.3f} %", 100 * *error);
}

struct Tally {
  size_t exact = 0, exact_reserved = 0, measured_reserved = 0;
  double worst = 0, worst_reserved = 0, sum_reserved = 0;
};

Tally tally_of(const std::vector<CheckResult>& results) {
  Tally tally;
  for (const CheckResult& result : results) {
    tally.exact += result.exact_phases == result.phases;
    if (const auto error = result.peak_allocated.error())
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

}  // namespace

std::string check_text(const std::vector<CheckResult>& results, double tolerance) {
  TextTable table;
  table.column("recording", TextTable::Align::left);
  for (const char* title : {"allocated", "estimated", "error", "reserved", "estimated", "error", "phases"})
    table.column(title);
  table.column("first difference", TextTable::Align::left);
  for (const CheckResult& result : results) {
    const auto& difference = result.first_difference;
    table.row({result.id, number(result.peak_allocated.recorded), number(result.peak_allocated.estimated),
               percent(result.peak_allocated.error()), number(result.peak_reserved.recorded),
               number(result.peak_reserved.estimated), percent(result.peak_reserved.error()),
               fmt::format("{}/{}", result.exact_phases, result.phases),
               difference ? fmt::format("line {}: recorded {}; estimated {}", difference->line,
                                        difference->recorded, difference->estimated)
                          : ""});
  }
  const Tally tally = tally_of(results);
  const auto within = static_cast<size_t>(
      std::ranges::count_if(results, [&](const CheckResult& result) { return result.within(tolerance); }));
  std::string text = table.text();
  text += fmt::format(
      "\nallocated and requested bytes of every phase equal: {} of {}; worst peak error {:.3f} %\n",
      tally.exact, results.size(), 100 * tally.worst);
  if (tally.measured_reserved > 0)
    text += fmt::format("peak of reserved bytes equal: {} of {}; mean error {:.3f} %, worst {:.3f} %\n",
                        tally.exact_reserved, tally.measured_reserved,
                        100 * tally.sum_reserved / static_cast<double>(tally.measured_reserved),
                        100 * tally.worst_reserved);
  return text + fmt::format("within {:g} %: {} of {}\n", 100 * tolerance, within, results.size());
}

std::string check_json(const std::vector<CheckResult>& results, double tolerance) {
  Json rows = Json::array(), summary = Json::array();
  for (const CheckResult& result : results) {
    for (const CheckRow& row : result.rows) rows.push_back(row_json(result, row));
    summary.push_back(summary_json(result, tolerance));
  }
  const Json json = {{"schema", "metaprof.check"},
                     {"schema_version", 1},
                     {"tolerance", tolerance},
                     {"rows", rows},
                     {"summary", summary}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace metaprof
