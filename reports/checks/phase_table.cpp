#include "reports/checks/phase_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

// The rows of one phase.
struct JoinedPhase {
  StepPart part;
  std::vector<const JoinedRow*> rows;
};

std::vector<JoinedPhase> by_phase(const std::vector<JoinedRow>& rows) {
  std::vector<JoinedPhase> phases;
  for (const JoinedRow& row : rows) {
    if (phases.empty() || phases.back().part != row.part || phases.back().rows[0]->field == row.field)
      phases.push_back({row.part, {}});
    phases.back().rows.push_back(&row);
  }
  return phases;
}

// "reserved_bytes.peak" as "reserved peak"; counts are called by what they count.
std::string title_of(const std::string& field) {
  const size_t point = field.find('.');
  std::string name = field.substr(0, point);
  if (name == "allocation") name = "requests";
  if (name == "segment") name = "segments";
  if (const size_t end = name.find("_bytes"); end != name.npos) name.erase(end);
  std::ranges::replace(name, '_', ' ');
  return fmt::format("{}{}", name, field.substr(point) == ".peak" ? " peak" : "");
}

std::vector<std::string> cells_of(const JoinedPhase& phase, const std::vector<std::string>& fields,
                                  size_t columns) {
  std::vector<std::string> cells;
  for (const std::string& field : fields) {
    const auto found =
        std::ranges::find_if(phase.rows, [&](const JoinedRow* row) { return row->field == field; });
    for (size_t i = 0; i < columns; ++i)
      cells.push_back(found == phase.rows.end() ? "-" : number_text((*found)->values[i]));
  }
  return cells;
}

std::string differing(const JoinedPhase& phase) {
  std::vector<std::string> names;
  for (const JoinedRow* row : phase.rows)
    if (!row->equal()) names.push_back(title_of(row->field));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool JoinedRow::equal() const {
  return std::ranges::all_of(values, [&](const auto& value) { return value == values[0]; });
}

std::vector<JoinedRow> joined(std::span<const CheckResult* const> results) {
  std::vector<JoinedRow> rows;
  for (size_t i = 0; i < results.size(); ++i) {
    size_t from = 0;  // rows stand in the order of phases, and a part of a step may come again
    for (const CheckRow& row : results[i]->rows) {
      const auto found =
          std::find_if(rows.begin() + static_cast<ptrdiff_t>(from), rows.end(), [&](const JoinedRow& one) {
            return one.part == row.part && one.field == row.field && !(i > 0 && one.values[i + 1]);
          });
      JoinedRow* joined = nullptr;
      if (i == 0 || found == rows.end())
        joined = &rows.emplace_back(
            JoinedRow{row.part, row.field, std::vector<std::optional<int64_t>>(results.size() + 1)});
      else
        joined = &*found, from = static_cast<size_t>(found - rows.begin());
      if (row.estimated) joined->values[0] = row.estimated;
      joined->values[i + 1] = row.recorded;
    }
  }
  return rows;
}

std::vector<std::string> column_titles(std::span<const CheckResult* const> results) {
  std::vector<std::string> titles;
  for (const CheckResult* result : results) {
    const auto same =
        std::ranges::count_if(results, [&](const CheckResult* one) { return one->on == result->on; });
    const char* word = to_string(result->on);
    titles.push_back(same == 1 ? word : fmt::format("{} ({})", word, result->recording));
  }
  return titles;
}

std::string number_text(const std::optional<int64_t>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

std::string phase_table_text(std::span<const CheckResult* const> results) {
  const std::vector<JoinedRow> rows = joined(results);
  const std::vector<JoinedPhase> phases = by_phase(rows);
  const std::vector<std::string> titles = column_titles(results);
  const bool micro =
      std::ranges::any_of(phases, [](const JoinedPhase& phase) { return phase.part.micro >= 0; });
  TextTable table;
  table.column("step");
  if (micro) table.column("micro");
  table.column("phase", TextTable::Align::left);
  for (const char* statistic : {"allocated peak", "reserved peak"}) {
    table.column(fmt::format("{}: estimate", statistic));
    for (const std::string& title : titles) table.column(title);
  }
  table.column("differs in", TextTable::Align::left);
  for (const JoinedPhase& phase : phases) {
    const bool setup = phase.part.phase == Phase::setup;
    std::vector<std::string> cells{setup ? "" : fmt::format("{}", phase.part.step + 1)};
    if (micro) cells.push_back(phase.part.micro < 0 ? "" : fmt::format("{}", phase.part.micro + 1));
    cells.emplace_back(to_string(phase.part.phase));
    for (std::string& cell :
         cells_of(phase, {"allocated_bytes.peak", "reserved_bytes.peak"}, results.size() + 1))
      cells.push_back(std::move(cell));
    cells.push_back(differing(phase));
    table.row(std::move(cells));
  }
  return table.text();
}

nlohmann::ordered_json phase_table_json(std::span<const CheckResult* const> results) {
  const std::vector<JoinedRow> rows = joined(results);
  std::vector<std::string> titles = column_titles(results);
  titles.insert(titles.begin(), "estimate");
  Json list = Json::array();
  for (const JoinedPhase& phase : by_phase(rows)) {
    const bool setup = phase.part.phase == Phase::setup;
    Json json = {{"phase", to_string(phase.part.phase)},
                 {"step", setup ? Json(nullptr) : Json(phase.part.step)}};
    if (phase.part.micro >= 0) json["micro"] = phase.part.micro;
    bool equal = true;
    for (const JoinedRow* row : phase.rows) {
      const size_t point = row->field.find('.');
      Json& values = json[row->field.substr(0, point)][row->field.substr(point + 1)];
      for (size_t i = 0; i < titles.size(); ++i)
        values[titles[i]] = row->values[i] ? Json(*row->values[i]) : Json(nullptr);
      equal &= row->equal();
    }
    json["equal"] = equal;
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace metaprof
