#include "reports/checks/diff_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "reports/tables/figure_table.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

int64_t change_of(const DiffRow& row) { return row.after.value_or(0) - row.before.value_or(0); }

constexpr std::string_view kCategory = "peak.by_category.", kPeak = "peak.", kBytes = "_bytes";
constexpr std::string_view kModules = "modules.", kSaved = ".saved_bytes";

bool is_bytes(const DiffRow& row) {
  return row.figure.find("bytes") != std::string::npos || row.figure.starts_with(kCategory);
}

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

// "temporary  4.6 GiB → 2.2 GiB  -2.4 GiB"
std::string cause_line(const std::string& name, const DiffRow& row) {
  const int64_t change = change_of(row);
  return fmt::format("{}  {} → {}  {}{}\n", name, number(row, row.before.value_or(0)),
                     number(row, row.after.value_or(0)), change > 0 ? "+" : "-",
                     number(row, std::abs(change)));
}

// By the size of the change.
std::vector<DiffRow> largest_first(std::vector<DiffRow> rows, size_t most) {
  std::ranges::stable_sort(rows, std::greater<>(),
                           [](const DiffRow& row) { return std::abs(change_of(row)); });
  rows.resize(std::min(rows.size(), most));
  return rows;
}

// What is reserved at most, and which kinds of memory alive at the peak changed most.
std::string by_cause(const ProfileDiff& diff) {
  constexpr size_t kMostCauses = 4;
  std::string text;
  std::vector<DiffRow> causes;
  for (const DiffRow& row : diff.rows) {
    if (row.figure == "peak.reserved_bytes") text = cause_line("reserved at most", row);
    if (row.figure.starts_with(kCategory)) causes.push_back(row);
  }
  for (const DiffRow& row : largest_first(std::move(causes), kMostCauses))
    text += cause_line("  " + row.figure.substr(kCategory.size()) + " alive at the peak", row);
  return text;
}

// Each row is named by its figure without `prefix` and `suffix`.
std::string markdown_table(std::string_view title, const std::vector<DiffRow>& rows, std::string_view prefix,
                           std::string_view suffix) {
  std::string text = fmt::format("| {} | before | after | change |\n| :-- | --: | --: | --: |\n", title);
  for (const DiffRow& row : rows) {
    std::string_view name = row.figure;
    name.remove_prefix(prefix.size());
    name.remove_suffix(suffix.size());
    const int64_t change = change_of(row);
    text += fmt::format("| {} | {} | {} | {}{} |\n", markdown_cell(name), number(row, row.before),
                        number(row, row.after), change > 0 ? "+" : "-", number(row, std::abs(change)));
  }
  return text;
}

}  // namespace

std::string diff_text(const ProfileDiff& diff, int top, size_t width) {
  std::string text;
  for (const std::string& option : diff.options) {
    text += option + "\n";
    if (option.starts_with("model: ")) text += "(these are two models)\n";
  }
  text += by_cause(diff);
  if (diff.rows.empty()) return text + "no figure differs\n";
  if (top == 0)
    return text +
           fmt::format("{} figures differ (--top 10 shows the largest, --top -1 all)\n", diff.rows.size());
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
  text += (text.empty() ? "" : "\n") + table.text(0, width);
  if (rows.size() < diff.rows.size())
    text += fmt::format("… and {} more (--top -1 shows all)\n", diff.rows.size() - rows.size());
  return text;
}

std::string diff_markdown(const ProfileDiff& diff) {
  constexpr size_t kMostModules = 20;
  std::string text = "### Memory of a training step\n\n";
  for (const std::string& option : diff.options) text += fmt::format("- {}\n", markdown_cell(option));
  if (!diff.options.empty()) text += '\n';
  if (diff.rows.empty()) return text + "No figure differs.\n";
  std::vector<DiffRow> peaks, categories, modules;
  for (const DiffRow& row : diff.rows) {
    const std::string& figure = row.figure;
    if (figure == "peak.reserved_bytes" || figure == "peak.allocated_bytes") peaks.push_back(row);
    if (figure.starts_with(kCategory)) categories.push_back(row);
    if (figure.starts_with(kModules) && figure.ends_with(kSaved)) modules.push_back(row);
  }
  if (peaks.empty()) text += "The peak is the same.\n\n";
  if (!peaks.empty()) text += markdown_table("at most", peaks, kPeak, kBytes) + '\n';
  if (!categories.empty())
    text += markdown_table("alive at the peak", largest_first(categories, categories.size()), kCategory, "") +
            '\n';
  if (modules.empty()) return text;
  return text + fmt::format("<details><summary>What backward keeps, by module</summary>\n\n{}\n</details>\n",
                            markdown_table("module", largest_first(modules, kMostModules), kModules, kSaved));
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
  return json_text(json);
}

}  // namespace metaprof
