#include "reports/sections/execution_figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/display.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

// "-12.50 %": of the graph against eager; empty: there is nothing to compare with.
std::string graph_change(int64_t eager, int64_t graph) {
  if (eager == graph) return "none";
  if (eager == 0) return "";
  return fmt::format("{:+.2f} %", 100 * (static_cast<double>(graph) / static_cast<double>(eager) - 1));
}

}  // namespace

std::string comparison_text(const ExecutionComparison& comparison) {
  const ExecutionFigures &eager = comparison.eager, &graph = comparison.graph;
  TextTable table;
  table.column("", TextTable::Align::left);
  for (const char* title : {"eager", "graph", "change"}) table.column(title);
  const auto row = [&](const char* what, int64_t before, int64_t after, auto shown_as) {
    table.row({what, shown_as(before), shown_as(after), graph_change(before, after)});
  };
  row("peak allocated", eager.peak.count, graph.peak.count, human_bytes);
  row("kept for backward", eager.saved.count, graph.saved.count, human_bytes);
  const Unit unit = unit_for_flops(std::max(eager.flops.count, graph.flops.count));
  row(fmt::format("all operators, {}", unit.name).c_str(), eager.flops.count, graph.flops.count,
      [&](int64_t flops) { return in_unit(flops, unit); });
  row("kernels", eager.kernels, graph.kernels, grouped);
  return table.text();
}

}  // namespace metaprof
