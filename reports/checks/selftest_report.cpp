#include "reports/checks/selftest_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "estimate/results/profile.h"
#include "reports/checks/check_findings.h"
#include "reports/checks/phase_table.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kMostPhases = 8;  // of a program that differs

std::vector<const CheckResult*> results_of(const SelftestProgram& program) {
  std::vector<const CheckResult*> results;
  if (!program.emulated.rows.empty()) results.push_back(&program.emulated);
  if (program.real) results.push_back(&*program.real);
  return results;
}

// Phases in which two of the columns are equal: 0 is the estimate, then emulated and real as far as they are there.
struct EqualPhases {
  size_t phases = 0, equal = 0;
  bool all() const { return phases > 0 && equal == phases; }
  std::string text() const { return phases == 0 ? "-" : fmt::format("{}/{}", equal, phases); }
};

EqualPhases equal_phases(const std::vector<JoinedRow>& rows, size_t a, size_t b) {
  EqualPhases tally;
  for (size_t i = 0; i < rows.size();) {
    bool equal = true, any = false;
    const std::string first = rows[i].field;
    size_t end = i;
    do {
      equal &= rows[end].values[a] == rows[end].values[b];
      any |= rows[end].values[a].has_value() || rows[end].values[b].has_value();
      ++end;
    } while (end < rows.size() && rows[end].part == rows[i].part && rows[end].field != first);
    tally.phases += any;
    tally.equal += any && equal;
    i = end;
  }
  return tally;
}

struct Compared {
  std::vector<JoinedRow> rows;
  EqualPhases run, engine;  ///< real with emulated; the estimate with the best that was run
  bool has_real = false;
};

Compared compared(const SelftestProgram& program) {
  const std::vector<const CheckResult*> results = results_of(program);
  Compared result{.rows = joined(results), .run = {}, .engine = {}, .has_real = program.real.has_value()};
  if (results.empty()) return result;
  if (results.size() == 2) result.run = equal_phases(result.rows, 1, 2);
  result.engine = equal_phases(result.rows, 0, results.size());
  return result;
}

std::optional<int64_t> peak_of(const std::vector<JoinedRow>& rows, const char* field, size_t column) {
  std::optional<int64_t> peak;
  for (const JoinedRow& row : rows)
    if (row.field == field && column < row.values.size()) peak = std::max(peak, row.values[column]);
  return peak;
}

std::string versions(const SelftestReport& report) {
  const Machine& machine = report.machine;
  std::string text = fmt::format("{} ({}{})", report.device_title, human_bytes(report.device_memory),
                                 report.gpu ? "" : ", emulated");
  if (!machine.driver.empty()) text += fmt::format(", driver {}", machine.driver);
  text += fmt::format(", PyTorch {}", machine.torch);
  if (machine.cudnn > 0) text += fmt::format(", cuDNN {}", version_text(machine.cudnn));
  return text + fmt::format(", Python {}", machine.python);
}

struct Totals {
  size_t requests = 0, run = 0, engine = 0;
};

Totals totals_of(const SelftestReport& report) {
  Totals totals;
  for (const SelftestProgram& program : report.programs) {
    const Compared one = compared(program);
    totals.requests += one.has_real && one.run.phases > 0 && !program.real_difference;
    totals.run += one.run.all() && !program.real_difference;
    totals.engine += one.engine.all();
  }
  return totals;
}

std::string programs_table(const SelftestReport& report) {
  TextTable table;
  table.column("program", TextTable::Align::left);
  if (report.gpu) table.column("requests equal");
  if (report.gpu) table.column("real = emulated");
  table.column(report.gpu ? "real = estimate" : "emulated = estimate");
  for (const char* title : {"allocated peak", "reserved peak"}) {
    table.column(fmt::format("{}: estimate", title));
    table.column("emulated");
    if (report.gpu) table.column("real");
  }
  for (const SelftestProgram& program : report.programs) {
    const Compared one = compared(program);
    std::vector<std::string> cells{program.name};
    if (report.gpu) cells.emplace_back(!one.has_real ? "-" : program.real_difference ? "no" : "yes");
    if (report.gpu) cells.push_back(one.run.text());
    cells.push_back(one.engine.text());
    const bool emulated = !program.emulated.rows.empty();
    for (const char* field : {"allocated_bytes.peak", "reserved_bytes.peak"}) {
      cells.push_back(number_text(peak_of(one.rows, field, 0)));
      cells.push_back(emulated ? number_text(peak_of(one.rows, field, 1)) : "-");
      if (report.gpu)
        cells.push_back(one.has_real ? number_text(peak_of(one.rows, field, emulated ? 2 : 1)) : "-");
    }
    table.row(std::move(cells));
  }
  return table.text();
}

// What a reader needs of a program that differs.
std::string details(const SelftestProgram& program) {
  std::string text = fmt::format("\n{}: {}\n", program.name, program.what);
  for (const std::string& problem : program.problems) text += fmt::format("  {}\n", problem);
  const Compared one = compared(program);
  if (one.run.phases > 0 && !one.run.all() && !program.real_difference)
    text += program.driver_decides
                ? "  the requests are equal, and the allocator's model repeats the real run address by "
                  "address: the "
                  "driver gave segments at other addresses, so that the allocator split other blocks\n"
                : "  the requests are equal, and the allocator does something else with them\n";
  if (program.real_difference)
    text += fmt::format("  the first request that differs: line {} of the log: real {}; emulated {}\n",
                        program.real_difference->line, program.real_difference->recorded,
                        program.real_difference->estimated);
  for (const CheckResult* result : results_of(program))
    if (result->first_difference)
      text += fmt::format("  {}: {}\n", result->on == MeasuredOn::real ? "real" : "emulated",
                          difference_text(*result->first_difference));
  const std::vector<const CheckResult*> results = results_of(program);
  std::vector<std::string> titles = column_titles(results);
  titles.insert(titles.begin(), "estimate");
  size_t shown = 0, differing = 0;
  for (const JoinedRow& row : joined(results)) {
    if (row.equal() || ++differing > kMostPhases) continue;
    text += fmt::format("  {}{} {}:", to_string(row.part.phase),
                        row.part.phase == Phase::setup ? "" : fmt::format(" of step {}", row.part.step + 1),
                        row.field);
    for (size_t i = 0; i < titles.size(); ++i)
      text += fmt::format(" {} {}", number_text(row.values[i]), titles[i]);
    text += '\n';
    ++shown;
  }
  if (differing > shown)
    text += fmt::format("  {} more figures differ (--json has them)\n", differing - shown);
  return text;
}

Json difference_json(const std::optional<EventMismatch>& difference, const char* first, const char* second) {
  if (!difference) return nullptr;
  return {{"line", difference->line}, {first, difference->recorded}, {second, difference->estimated}};
}

Json program_json(const SelftestProgram& program) {
  const std::vector<const CheckResult*> results = results_of(program);
  Json json = {{"name", program.name},
               {"what", program.what},
               {"equal", program.equal()},
               {"problems", program.problems},
               {"real_difference", difference_json(program.real_difference, "real", "emulated")},
               {"driver_decides", program.driver_decides}};
  json["estimate_difference"] = nullptr;
  for (const CheckResult* result : results)
    json["estimate_difference"] = difference_json(
        result->first_difference, result->on == MeasuredOn::real ? "real" : "emulated", "estimate");
  json["phases"] = phase_table_json(results);
  return json;
}

}  // namespace

std::string selftest_text(const SelftestReport& report) {
  const Totals totals = totals_of(report);
  const size_t count = report.programs.size();
  std::string text =
      report.gpu
          ? fmt::format(
                "real = emulated in every phase: {} of {} programs (in every request: {}); real = "
                "estimate: {}\n",
                totals.run, count, totals.requests, totals.engine)
          : fmt::format("emulated = estimate in every phase: {} of {} programs\n", totals.engine, count);
  text += fmt::format("{}, {:.0f} s\n\n", versions(report), report.seconds);
  text += programs_table(report);
  for (const SelftestProgram& program : report.programs)
    if (!program.equal()) text += details(program);
  return text;
}

std::string selftest_json(const SelftestReport& report, std::string_view version) {
  const Machine& machine = report.machine;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json device = {{"title", report.device_title}, {"memory", report.device_memory}};
  if (machine.device)
    device.update({{"sm", machine.device->sm},
                   {"multiprocessors", machine.device->multiprocessors},
                   {"shared_memory_per_block", machine.device->shared_memory_per_block}});
  const Totals totals = totals_of(report);
  Json json = {{"schema", "metaprof.selftest"},
               {"schema_version", 1},
               {"metaprof", version},
               {"date", report.date},
               {"seconds", report.seconds},
               {"gpu", report.gpu},
               {"device", device},
               {"driver", or_null(machine.driver)},
               {"torch", machine.torch},
               {"cuda", or_null(machine.cuda)},
               {"cudnn", machine.cudnn == 0 ? Json(nullptr) : Json(version_text(machine.cudnn))},
               {"python", machine.python},
               {"equal",
                {{"programs", report.programs.size()},
                 {"real_emulated_requests", report.gpu ? Json(totals.requests) : Json(nullptr)},
                 {"real_emulated", report.gpu ? Json(totals.run) : Json(nullptr)},
                 {"estimate", totals.engine}}}};
  json["programs"] = Json::array();
  for (const SelftestProgram& program : report.programs) json["programs"].push_back(program_json(program));
  return json_text(json);
}

}  // namespace metaprof
