#include "reports/module_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "meta/core/error.h"
#include "meta/trace/module_path.h"
#include "reports/format.h"
#include "reports/text_table.h"

namespace metaprof {
namespace {

constexpr size_t kMostNameCharacters = 36;
constexpr size_t kMostTypeCharacters = 24;

struct Figures {
  const ModuleRow* row = nullptr;
  ByPhase<Flops> flops;
};

enum class Measure { elements, bytes, flops };

struct Column {
  std::string_view name;   // for --columns and --sort
  std::string_view title;  // in the header, before the unit
  Measure measure;
  int64_t (*value)(const Figures&);
};

constexpr Column kColumns[] = {
    {"parameters", "parameters", Measure::elements, [](const Figures& f) { return f.row->parameters; }},
    {"saved", "saved", Measure::bytes, [](const Figures& f) { return f.row->saved.count; }},
    {"forward_tmp", "fwd tmp", Measure::bytes, [](const Figures& f) { return f.row->forward_tmp.count; }},
    {"forward_out", "fwd out", Measure::bytes, [](const Figures& f) { return f.row->forward_out.count; }},
    {"backward_tmp", "bwd tmp", Measure::bytes, [](const Figures& f) { return f.row->backward_tmp.count; }},
    {"backward_out", "bwd out", Measure::bytes, [](const Figures& f) { return f.row->backward_out.count; }},
    {"flops_forward", "fwd", Measure::flops, [](const Figures& f) { return f.flops.forward.count; }},
    {"flops_backward", "bwd", Measure::flops, [](const Figures& f) { return f.flops.backward.count; }},
};

const Column& column_named(std::string_view name) {
  std::string known;
  for (const Column& column : kColumns) {
    if (column.name == name) return column;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", column.name);
  }
  fail("there is no column '{}'; there are type, {}", name, known);
}

struct ShownColumns {
  bool type = false;
  std::vector<const Column*> columns;
};

ShownColumns chosen(const std::vector<std::string>& names) {
  ShownColumns chosen;
  if (names.empty()) {
    chosen.type = true;
    for (const Column& column : kColumns) chosen.columns.push_back(&column);
  }
  for (const std::string& name : names) {
    if (name == "type")
      chosen.type = true;
    else
      chosen.columns.push_back(&column_named(name));
  }
  return chosen;
}

// The rows are a tree in preorder; sorts the children of each by a column.
std::vector<Figures> sorted(const std::vector<Figures>& rows, const Column& by) {
  std::vector<std::vector<size_t>> children(rows.size());
  std::vector<size_t> open;  // the path to the row, one per depth
  for (size_t i = 0; i < rows.size(); ++i) {
    open.resize(static_cast<size_t>(rows[i].row->depth));
    if (!open.empty()) children[open.back()].push_back(i);
    open.push_back(i);
  }
  std::vector<Figures> result;
  std::vector<size_t> stack;
  if (!rows.empty()) stack.push_back(0);
  while (!stack.empty()) {
    const size_t i = stack.back();
    stack.pop_back();
    result.push_back(rows[i]);
    std::stable_sort(children[i].begin(), children[i].end(),
                     [&](size_t a, size_t b) { return by.value(rows[a]) > by.value(rows[b]); });
    stack.insert(stack.end(), children[i].rbegin(), children[i].rend());
  }
  return result;
}

// Columns of one measure share a unit, so that they can be compared.
Unit unit_of(Measure measure, const std::vector<const Column*>& columns, const std::vector<Figures>& rows) {
  int64_t largest = 0;
  for (const Column* column : columns)
    if (column->measure == measure)
      for (const Figures& figures : rows) largest = std::max(largest, column->value(figures));
  switch (measure) {
    case Measure::bytes: return unit_for_bytes(largest);
    case Measure::flops: return unit_for_flops(largest);
    default: return {"", 1, 0};
  }
}

std::string name_in_tree(const ModuleRow& row) {
  if (row.path.empty()) return "(root)";
  const std::string_view path = row.path;
  const size_t dot = path.rfind('.');
  const std::string indent(2 * static_cast<size_t>(std::min(row.depth, 12)), ' ');
  return indent + shown(path.substr(dot == path.npos ? 0 : dot + 1), kMostNameCharacters);
}

std::string type_of(const ProfileReport& report, const std::string& path) {
  const auto found = report.module_types.find(path);
  if (found == report.module_types.end()) return "";
  const std::string_view type = found->second;
  const size_t dot = type.rfind('.');  // "torch.nn.modules.conv.Conv2d" is known as Conv2d
  return shown(type.substr(dot == type.npos ? 0 : dot + 1), kMostTypeCharacters);
}

std::vector<Figures> figures_of(const ProfileReport& report) {
  std::vector<Figures> rows;
  for (const ModuleRow& row : report.memory.modules) {
    const auto cost = report.counts.by_module.find(row.path);
    rows.push_back({&row, cost == report.counts.by_module.end() ? ByPhase<Flops>{} : cost->second.counted});
  }
  return rows;
}

}  // namespace

std::vector<std::string> module_column_names() {
  std::vector<std::string> names{"type"};
  for (const Column& column : kColumns) names.emplace_back(column.name);
  return names;
}

std::string module_table(const ProfileReport& report, const TextOptions& options) {
  const ShownColumns columns = chosen(options.columns);
  std::vector<Figures> rows = figures_of(report);
  if (!options.sort.empty()) rows = sorted(rows, column_named(options.sort));

  TextTable table;
  table.column("module", TextTable::Align::left);
  if (columns.type) table.column("type", TextTable::Align::left);
  std::vector<Unit> units;
  for (const Column* column : columns.columns) {
    const Unit unit = units.emplace_back(unit_of(column->measure, columns.columns, rows));
    table.column(fmt::format("{}{}{}", column->title, unit.name.empty() ? "" : ", ", unit.name));
  }
  size_t hidden = 0;
  for (const Figures& figures : rows) {
    if (options.depth >= 0 && figures.row->depth > options.depth) {
      ++hidden;
      continue;
    }
    std::vector<std::string> cells{name_in_tree(*figures.row)};
    if (columns.type) cells.push_back(type_of(report, figures.row->path));
    for (size_t i = 0; i < units.size(); ++i)
      cells.push_back(in_unit(columns.columns[i]->value(figures), units[i]));
    table.row(std::move(cells));
  }
  std::string text = table.text();
  if (hidden > 0)
    text += fmt::format("{} modules deeper than {} are not shown (--depth)\n", hidden, options.depth);
  return text;
}

}  // namespace metaprof
