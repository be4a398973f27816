#include "reports/profile/module_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "meta/trace/module_path.h"

namespace metaprof {
namespace {

struct Figures {
  const ModuleRow* row = nullptr;
  ByPhase<Flops> flops;
};

struct Column : FigureColumn {
  int64_t (*value)(const Figures&);
};

constexpr Column kColumns[] = {
    {{"parameters", "parameters", Measure::elements}, [](const Figures& f) { return f.row->parameters; }},
    {{"saved", "saved", Measure::bytes}, [](const Figures& f) { return f.row->saved.count; }},
    {{"forward_tmp", "fwd tmp", Measure::bytes}, [](const Figures& f) { return f.row->forward_tmp.count; }},
    {{"forward_out", "fwd out", Measure::bytes}, [](const Figures& f) { return f.row->forward_out.count; }},
    {{"backward_tmp", "bwd tmp", Measure::bytes}, [](const Figures& f) { return f.row->backward_tmp.count; }},
    {{"backward_out", "bwd out", Measure::bytes}, [](const Figures& f) { return f.row->backward_out.count; }},
    {{"flops_forward", "fwd", Measure::flops}, [](const Figures& f) { return f.flops.forward.count; }},
    {{"flops_backward", "bwd", Measure::flops}, [](const Figures& f) { return f.flops.backward.count; }},
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

std::string last_segment(const std::string& path) {
  if (path.empty()) return "(root)";
  const size_t dot = path.rfind('.');
  return path.substr(dot == path.npos ? 0 : dot + 1);
}

std::string type_of(const ProfileReport& report, const std::string& path) {
  const auto found = report.module_types.find(path);
  if (found == report.module_types.end()) return "";
  const std::string_view type = found->second;
  const size_t dot = type.rfind('.');  // "torch.nn.modules.conv.Conv2d" is known as Conv2d
  return std::string(type.substr(dot == type.npos ? 0 : dot + 1));
}

void keep_largest(std::vector<Figures>& rows, const Column& by, int top) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Figures& a, const Figures& b) { return by.value(a) > by.value(b); });
  rows.resize(std::min(rows.size(), static_cast<size_t>(top)));
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

ModuleTable module_table(const ProfileReport& report, const TextOptions& options, bool whole_paths) {
  const ShownColumns columns = chosen(options.columns);
  std::vector<Figures> rows = figures_of(report);
  const bool flat = options.top > 0;  // the largest of all levels are no tree
  if (flat) {
    keep_largest(rows, column_named(options.sort.empty() ? "saved" : options.sort), options.top);
  } else if (!options.sort.empty()) {
    rows = sorted(rows, column_named(options.sort));
  }

  ModuleTable result;
  result.table.words.emplace_back("module");
  if (columns.type) result.table.words.emplace_back("type");
  for (const Column* column : columns.columns) result.table.columns.push_back(*column);
  for (const Figures& figures : rows) {
    if (!flat && options.depth >= 0 && figures.row->depth > options.depth) {
      ++result.hidden;
      continue;
    }
    FigureRow& row = result.table.rows.emplace_back();
    const std::string& path = figures.row->path;
    row.words.push_back((whole_paths || flat) && !path.empty() ? path : last_segment(path));
    if (!whole_paths && !flat) row.indent = figures.row->depth;
    if (columns.type) row.words.push_back(type_of(report, path));
    for (const Column* column : columns.columns) row.figures.emplace_back(column->value(figures));
  }
  return result;
}

}  // namespace metaprof
