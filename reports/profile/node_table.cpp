#include "reports/profile/node_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/formats/display.h"

namespace metaprof {
namespace {

struct NodeFigures {
  const NodeRow* row = nullptr;
  Bytes accumulated;
};

struct NodeColumn : FigureColumn {
  Figure (*value)(const NodeFigures&);
};

Figure bytes(Bytes amount) { return amount.count; }

constexpr NodeColumn kNodeColumns[] = {
    {{"accumulated", "accumulated", Measure::bytes},
     [](const NodeFigures& f) { return bytes(f.accumulated); }},
    {{"fwd_mem_tmp", "fwd tmp", Measure::bytes},
     [](const NodeFigures& f) { return bytes(f.row->fwd_mem_tmp); }},
    {{"fwd_mem_out", "fwd out", Measure::bytes},
     [](const NodeFigures& f) { return bytes(f.row->fwd_mem_out); }},
    {{"save_fwd_in", "saves in", Measure::elements},
     [](const NodeFigures& f) -> Figure { return int64_t{f.row->save_fwd_in()}; }},
    {{"parameters", "parameters", Measure::bytes},
     [](const NodeFigures& f) { return bytes(f.row->parameters); }},
    {{"fwd_mem_peak", "fwd peak", Measure::bytes},
     [](const NodeFigures& f) { return bytes(f.row->fwd_mem_peak); }},
    {{"bwd_mem_tmp", "bwd tmp", Measure::bytes},
     [](const NodeFigures& f) { return bytes(f.row->bwd_mem_tmp); }},
    {{"bwd_mem_out", "bwd out", Measure::bytes},
     [](const NodeFigures& f) { return bytes(f.row->bwd_mem_out); }},
    {{"fwd_flop", "fwd", Measure::flops},
     [](const NodeFigures& f) -> Figure { return f.row->fwd_flop.count; }},
    {{"bwd_flop", "bwd", Measure::flops},
     [](const NodeFigures& f) -> Figure { return f.row->bwd_flop.count; }},
    {{"fwd_time", "fwd", Measure::seconds}, [](const NodeFigures& f) -> Figure { return f.row->fwd_time; }},
    {{"bwd_time", "bwd", Measure::seconds}, [](const NodeFigures& f) -> Figure { return f.row->bwd_time; }},
};

const NodeColumn& node_column_named(std::string_view name) {
  std::string known;
  for (const NodeColumn& column : kNodeColumns) {
    if (column.name == name) return column;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", column.name);
  }
  fail("there is no column '{}' of nodes; there are type, {}", name, known);
}

}  // namespace

std::string node_type(const ProfileReport& report, const NodeRow& row) {
  switch (row.node.kind) {
    case ModelNode::Kind::input: return "input";
    case ModelNode::Kind::call:
      if (!row.is_alias()) return "operator";
      return row.fwd_time > 0 ? "in place" : "view";
    default: break;
  }
  const auto found = report.module_types.find(row.module);
  if (found == report.module_types.end()) return "module";
  return found->second.substr(found->second.rfind('.') + 1);
}

std::vector<std::string> node_column_names() {
  std::vector<std::string> names{"type"};
  for (const NodeColumn& column : kNodeColumns) names.emplace_back(column.name);
  return names;
}

FigureTable node_table(const ProfileReport& report, const TextOptions& options) {
  std::vector<NodeFigures> rows;
  Bytes accumulated;
  for (const NodeRow& row : report.nodes->rows) {
    accumulated += row.kept();
    rows.push_back({&row, accumulated});
  }
  if (!options.sort.empty() || options.top > 0) {
    const NodeColumn& by = node_column_named(options.sort.empty() ? "fwd_mem_out" : options.sort);
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const NodeFigures& a, const NodeFigures& b) { return by.value(a) > by.value(b); });
    if (options.top > 0) rows.resize(std::min(rows.size(), static_cast<size_t>(options.top)));
  }

  FigureTable table;
  table.words.emplace_back("node");
  std::vector<const NodeColumn*> columns;
  bool type = options.columns.empty();
  if (options.columns.empty())
    for (const NodeColumn& column : kNodeColumns) columns.push_back(&column);
  for (const std::string& name : options.columns) {
    if (name == "type") {
      type = true;
    } else {
      columns.push_back(&node_column_named(name));
    }
  }
  if (type) table.words.emplace_back("type");
  for (const NodeColumn* column : columns) table.columns.push_back(*column);
  for (const NodeFigures& figures : rows) {
    FigureRow& row = table.rows.emplace_back();
    row.words.push_back(figures.row->name);
    if (type) row.words.push_back(node_type(report, *figures.row));
    for (const NodeColumn* column : columns) row.figures.push_back(column->value(figures));
  }
  return table;
}

std::string node_totals(const NodeProfile& nodes) {
  const Bytes forward = nodes.live_after_forward - nodes.live_before_forward;
  return fmt::format(
      "the forward keeps {} B: {} B saved for backward, {} B held otherwise (results, what checkpoints pass "
      "on)\n"
      "live bytes grow by {} B in the forward and by {} B in the backward\n",
      grouped((nodes.saved + nodes.held).count), grouped(nodes.saved.count), grouped(nodes.held.count),
      grouped(forward.count), grouped((nodes.live_after_backward - nodes.live_before_backward).count));
}

}  // namespace metaprof
