#include "reports/diff_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/format.h"
#include "reports/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

int64_t change_of(const DiffRow& row) { return row.after.value_or(0) - row.before.value_or(0); }

bool is_bytes(const DiffRow& row) { return row.figure.find("bytes") != std::string::npos; }

// A total, and no element of a list.
bool is_total(const DiffRow& row) {
  for (const char* list : {".by_op", ".by_module", ".by_node", "phases.", "modules."})
    if (row.figure.find(list) != std::string::npos) return false;
  return true;
}

// The totals, then those of the rest that changed most: bytes before anything else.
std::vector<DiffRow> most_telling(std::vector<DiffRow> rows, size_t others) {
  const auto end_of_totals = std::stable_partition(rows.begin(), rows.end(), is_total);
  std::stable_sort(end_of_totals, rows.end(), [](const DiffRow& a, const DiffRow& b) {
    if (is_bytes(a) != is_bytes(b)) return is_bytes(a);
    return std::abs(change_of(a)) > std::abs(change_of(b));
  });
  rows.resize(std::min(rows.size(), static_cast<size_t>(end_of_totals - rows.begin()) + others));
  return rows;
}

std::string number(const DiffRow& row, const std::optional<int64_t>& value) {
  if (!value) return "-";
  return is_bytes(row) ? human_bytes(*value) : grouped(*value);
}

}  // namespace

std::string diff_text(const ProfileDiff& diff, int top) {
  std::string text;
  for (const std::string& option : diff.options) text += option + "\n";
  if (diff.rows.empty()) return text + "no figure differs\n";
  const std::vector<DiffRow> rows = top < 0 ? diff.rows : most_telling(diff.rows, static_cast<size_t>(top));
  TextTable table;
  table.column("figure", TextTable::Align::left);
  for (const char* title : {"before", "after", "change", "share"}) table.column(title);
  for (const DiffRow& row : rows) {
    const int64_t change = change_of(row);
    const bool share = row.before && row.after && *row.before != 0;
    table.row({row.figure, number(row, row.before), number(row, row.after),
               (change > 0 ? "+" : "-") + number(row, std::abs(change)),
               share ? fmt::format("{:+.1f} %",
                                   100.0 * static_cast<double>(change) / static_cast<double>(*row.before))
                     : ""});
  }
  text += (text.empty() ? "" : "\n") + table.text();
  if (rows.size() < diff.rows.size())
    text += fmt::format("… and {} more (--top -1 shows all)\n", diff.rows.size() - rows.size());
  return text;
}

std::string diff_json(const ProfileDiff& diff) {
  const auto or_null = [](const std::optional<int64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json rows = Json::array();
  for (const DiffRow& row : diff.rows)
    rows.push_back({{"figure", row.figure}, {"before", or_null(row.before)}, {"after", or_null(row.after)}});
  const Json json = {{"schema", "metaprof.diff"}, {"schema_version", 1},     {"before", diff.before},
                     {"after", diff.after},       {"options", diff.options}, {"rows", rows}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace metaprof
