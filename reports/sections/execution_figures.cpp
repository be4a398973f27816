#include "reports/sections/execution_figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/formats/display.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

// "-12.50 %": of the second against the first; empty: there is nothing to compare with.
std::string change_of(int64_t first, int64_t second) {
  if (first == second) return "none";
  if (first == 0) return "";
  return fmt::format("{:+.2f} %", 100 * (static_cast<double>(second) / static_cast<double>(first) - 1));
}

struct Named {
  const char* title;
  const ExecutionFigures& figures;
};

std::string table_of(Named first, Named second) {
  const ExecutionFigures &one = first.figures, &other = second.figures;
  TextTable table;
  table.column("", TextTable::Align::left);
  for (const char* title : {first.title, second.title, "change"}) table.column(title);
  const auto row = [&](const char* what, int64_t before, int64_t after, auto shown_as) {
    table.row({what, shown_as(before), shown_as(after), change_of(before, after)});
  };
  row("peak allocated", one.peak.count, other.peak.count, human_bytes);
  row("kept for backward", one.saved.count, other.saved.count, human_bytes);
  const Unit unit = unit_for_flops(std::max(one.flops.count, other.flops.count));
  row(fmt::format("all operators, {}", unit.name).c_str(), one.flops.count, other.flops.count,
      [&](int64_t flops) { return in_unit(flops, unit); });
  row("kernels", one.kernels, other.kernels, grouped);
  return table.text();
}

std::string counted(size_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

std::string scope_text(const GraphScope& scope) {
  std::string text =
      fmt::format("the graph is of {}: {} and {} of gradients; ", scope.device,
                  counted(scope.plans, "plan", "plans"), counted(scope.of_gradients, "plan", "plans"));
  if (!scope.optimised)
    text += "not compiled, it ran as it is (--fallback)";
  else
    text += counted(scope.passes.size(), "pass", "passes");
  if (!scope.left_out.empty()) text += fmt::format(" without {}", fmt::join(scope.left_out, ", "));
  text += fmt::format("; {} in {}, {} of products\n", counted(scope.fused, "operator", "operators"),
                      counted(scope.kernels, "fused kernel", "fused kernels"),
                      counted(scope.batches, "batch", "batches"));
  if (scope.on_host) text += "on the host PyTorch's graph executor fuses nothing\n";
  if (!scope.outside.empty()) {
    text += "outside of differentiated graphs, where eager autograd computes the gradients:";
    for (const auto& [name, count] : scope.outside)
      text += fmt::format("{} {} {}", name == scope.outside.begin()->first ? "" : ",", count, name);
    text += "\n";
  }
  if (scope.followed > 0)
    text += fmt::format(
        "{}: PyTorch's graph keeps them, and fused kernels end there, so that its "
        "figures may differ\n",
        counted(scope.followed, "branch or loop of the archive was followed",
                "branches and loops of the archive were followed"));
  return text;
}

}  // namespace

std::string comparison_text(const ExecutionComparison& comparison) {
  return table_of({"eager", comparison.eager}, {"graph", comparison.graph}) + scope_text(comparison.scope);
}

std::string comparison_text(const BranchComparison& comparison) {
  return table_of({"true", comparison.when_true}, {"false", comparison.when_false});
}

std::string comparison_text(const LoopComparison& comparison) {
  return table_of({"1 trip", comparison.one_trip}, {"2 trips", comparison.two_trips});
}

}  // namespace metaprof
