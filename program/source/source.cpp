#include "program/source/source.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "program/def_use.h"
#include "program/handed_positions.h"
#include "program/higher_order.h"
#include "program/source/conversions.h"
#include "program/source/dtypes.h"
#include "program/source/elided_copies.h"
#include "program/source/even_shares.h"
#include "program/source/frames.h"
#include "program/source/host_constants.h"
#include "program/source/lifetimes.h"
#include "program/source/traced_masks.h"

namespace metaprof {
namespace {

class SourceReader {
 public:
  SourceReader(Program& program, const Registry& registry)
      : program_(program), registry_(registry), frames_(program) {}

  void read(Graph& graph) { find_drops(graph, prepared(graph), registry_, of_regions_[&graph]); }

 private:
  // Reads the graphs inside, then all but the lifetimes.
  SourceFrames prepared(Graph& graph) {
    for (GraphNode& node : graph.nodes)
      for (Operand& operand : node.operands)
        if (operand.graph) read_inside(graph, node, operand);
    SourceFrames frames = frames_.frames_of(graph);
    find_copies_to_view(program_, graph, frames);
    undo_conversions(graph, frames, registry_);
    find_named_dtypes(program_, graph);
    find_products_without_autocast(graph, registry_);
    find_dtype_sources(program_, graph, frames);
    return frames;
  }

  void read_inside(Graph& graph, GraphNode& node, Operand& operand) {
    auto inner = std::make_shared<Graph>(*operand.graph);
    const SourceFrames frames = prepared(*inner);
    const Variables& of_regions = of_regions_[inner.get()];
    const std::optional<RegionCall> call = region_call(node);
    using Kind = RegionCall::Kind;
    if (call && (call->kind == Kind::gradients || call->kind == Kind::autocast))
      hand_out(graph, node, *inner, variables_after(*inner, frames, registry_, of_regions));
    if (call && is_control_flow(call->kind))
      drop_after_last_use(*inner);  // a graph has no variables
    else
      find_drops(*inner, frames, registry_, of_regions);
    operand.graph = std::move(inner);
  }

  // A `with` block is no function: what its variables hold is there when it is over, so that it becomes a result.
  void hand_out(Graph& graph, GraphNode& node, Graph& inner, const Variables& variables) {
    std::set<ValueId> returned;
    for (size_t i = 0; i < inner.outputs.size(); ++i) {
      if (inner.outputs[i].kind != Operand::Kind::value) continue;
      returned.insert(inner.outputs[i].value);
      const auto variable = variables.find(inner.outputs[i].value);
      if (variable != variables.end() && i < node.targets.size() && node.targets[i].values.size() == 1)
        of_regions_[&graph].emplace(node.targets[i].values[0], variable->second);
    }
    if (node.targets.size() != inner.outputs.size()) return;
    for (const auto& [value, variable] : variables) {
      if (returned.contains(value)) continue;
      Operand output;
      output.kind = Operand::Kind::value;
      output.value = value;
      inner.outputs.push_back(std::move(output));
      const auto outside = static_cast<ValueId>(graph.values.size());
      graph.values.push_back(inner.values[size_t(value)]);
      graph.values.back().name += fmt::format("_{}", outside);  // no other value's
      node.targets.push_back({.list = false, .values = {outside}});
      of_regions_[&graph].emplace(outside, variable);
    }
  }

  const Program& program_;
  const Registry& registry_;
  const FrameFinder frames_;
  std::map<const Graph*, Variables> of_regions_;  // of graphs that are being read
};

void complete(Program& program, const Registry& registry, bool exported_on_host) {
  restore_contiguous(program);
  SourceReader(program, registry).read(program.graph);
  hand_positions(program);
  find_host_constants(program, registry, exported_on_host);
  assume_even_shares(program, registry);
}

}  // namespace

void read_source(Program& program, const Registry& registry, bool exported_on_host) {
  if (std::optional<Graph> plain = without_traced_masks(program)) {
    Program traced = program;
    complete(traced, registry, exported_on_host);
    program.graph = std::move(*plain);
    program.traced = std::make_shared<const Program>(std::move(traced));
  }
  complete(program, registry, exported_on_host);
}

}  // namespace metaprof
