#include <fmt/format.h>

#include <algorithm>

#include "core/formats/display.h"
#include "reports/compiled/cudagraphs_report.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

struct Place {
  std::string name;
  const MemoryStatistics& memory;
};

std::string memory_table(const std::vector<Place>& places) {
  TextTable table;
  table.column("after", TextTable::Align::left);
  for (const char* title : {"allocated", "peak", "reserved", "in the graph's pool"}) table.column(title);
  for (const auto& [name, memory] : places) {
    int64_t in_pool = 0;
    for (const auto& [pool, bytes] : memory.segments_by_pool) in_pool += pool.is_default() ? 0 : bytes;
    table.row({name, human_bytes(memory.allocated.current), human_bytes(memory.allocated.peak),
               human_bytes(memory.reserved.current), human_bytes(in_pool)});
  }
  return table.text();
}

std::string failure_text(const std::optional<FailedCapture>& failed) {
  if (!failed) return "";
  return fmt::format("out of memory ({}): {} were asked for\n", failed->place,
                     human_bytes(failed->requested.count));
}

std::string whole_network_text(const CudagraphsReport& report) {
  const WholeNetworkMemory& memory = *report.whole_network;
  const std::string warm =
      report.warmup == 1 ? "1 step to warm up" : fmt::format("{} steps to warm up", report.warmup);
  return "The whole step as one graph\n" +
         memory_table({{"setup", memory.setup},
                       {warm, memory.warm},
                       {"the capture", memory.captured},
                       {"replays", memory.replayed}}) +
         failure_text(memory.out_of_memory) +
         fmt::format("a replay copies {} of inputs and launches one graph in place of {} operators\n",
                     human_bytes(memory.copied.count), memory.launches);
}

std::string graphed_callables_text(const GraphedCallablesMemory& memory) {
  return "\nForward and backward by make_graphed_callables\n" +
         memory_table(
             {{"setup", memory.setup}, {"the captures", memory.captured}, {"steps", memory.replayed}}) +
         failure_text(memory.out_of_memory);
}

std::string verdicts_text(const CudagraphsReport& report) {
  std::string text;
  for (const CaptureVerdict& verdict : report.graphs) {
    text += fmt::format("{}: {}\n", verdict.graph, shown(to_text(verdict), 300));
    if (!verdict.unknown.empty())
      text += fmt::format("  of {} operators nothing is known, {} first\n", verdict.unknown.size(),
                          shown(*verdict.unknown.begin(), 80));
  }
  return text + "\n";
}

// Inputs that are copied or written to; the others are fixed and only read.
std::string inputs_text(const CaptureVerdict& verdict) {
  TextTable table;
  table.column("input", TextTable::Align::left);
  table.column("copied per call");
  table.column("written to", TextTable::Align::left);
  size_t fixed = 0;
  for (const CaptureInput& input : verdict.inputs) {
    if (input.fixed && input.mutation == MutationKind::none) ++fixed;
    if (input.fixed && input.mutation != MutationKind::unmanaged) continue;
    constexpr std::string_view kinds[] = {"no (a)", "a parameter or buffer (b)", "an earlier output (c)",
                                          "yes (d)"};
    table.row({shown(input.name, 60), human_bytes(input.copied.count),
               std::string(kinds[static_cast<size_t>(input.mutation)])});
  }
  const auto state = std::ranges::count(verdict.inputs, MutationKind::state, &CaptureInput::mutation);
  return table.text() +
         fmt::format("fixed and only read: {}; parameters and buffers that are written to (b): {}\n\n", fixed,
                     state);
}

std::string tree_text(const StepTree& tree) {
  std::string text = fmt::format(
      "\nForward and backward as a tree of graphs, {} steps: {} runs to warm up, {} recordings, {} replays; "
      "{} inputs are copied (modules are inlined, so that parameters are inputs)\n",
      tree.steps, tree.counters.warmups, tree.counters.recordings, tree.counters.replays,
      tree.counters.non_static_inputs);
  if (!tree.overwritten.empty())
    return text + fmt::format(
                      "ENDS WITH AN ERROR: \"accessing tensor output of CUDAGraphs that has been overwritten "
                      "by a subsequent "
                      "run\": {} takes a gradient that is an output of the run before\n"
                      "to fix it: p.grad = p.grad.clone() for every parameter after each backward; or let "
                      "zero_grad set "
                      "gradients to None and run one backward a step\n",
                      tree.overwritten);
  if (!tree.not_modelled.empty()) return text + "its bytes are not modelled: " + tree.not_modelled + "\n";
  text += fmt::format("allocated {}, peak {}, reserved {}\n", human_bytes(tree.memory.allocated.current),
                      human_bytes(tree.memory.allocated.peak), human_bytes(tree.memory.reserved.peak));
  if (tree.out_of_memory)
    text += fmt::format("out of memory: {} were asked for\n", human_bytes(tree.out_of_memory->count));
  return text;
}

}  // namespace

std::string cudagraphs_dot(const CudagraphsReport& report) {
  std::string text = "digraph cudagraphs {\n  node [shape=box];\n";
  const std::vector<GraphTree::Node> nodes =
      report.tree ? report.tree->nodes : std::vector<GraphTree::Node>();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const GraphTree::Node& node = nodes[i];
    if (node.warm_up) continue;
    text +=
        fmt::format("  n{} [label=\"{}\\n{} inputs copied\\nreplayed {} times\"];\n", i,
                    report.tree->functions[static_cast<size_t>(node.function)], node.copied, node.replays);
    if (node.parent != kNoGraphNode) text += fmt::format("  n{} -> n{};\n", node.parent, i);
  }
  return text + "}\n";
}

std::string cudagraphs_text(const CudagraphsReport& report) {
  std::string text = fmt::format("{} on {}\n\n", report.model, report.device);
  text += verdicts_text(report);
  if (!report.graphs.empty() && !report.graphs.front().inputs.empty())
    text += inputs_text(report.graphs.front());
  if (report.whole_network) text += whole_network_text(report);
  if (report.graphed_callables) text += graphed_callables_text(*report.graphed_callables);
  if (report.tree) text += tree_text(*report.tree);
  return text;
}

}  // namespace metaprof
