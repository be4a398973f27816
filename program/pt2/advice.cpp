#include "program/pt2/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "program/higher_order.h"
#include "program/visit.h"

namespace metaprof {
namespace {

bool disables_gradients(const GraphNode& node) {
  const auto region = region_call(node);
  return region && region->kind == RegionCall::Kind::gradients && !region->enabled;
}

bool is_disabled_autocast(const GraphNode& node) {
  const auto region = region_call(node);
  return region && region->kind == RegionCall::Kind::autocast && !region->enabled && region->device == "cuda";
}

void warn_of_lost_gradients(Pt2Context& context) {
  const Program& program = context.program;
  const ValueId loss = program.loss();
  std::vector<char> with_gradients(program.graph.values.size()), without_gradients = with_gradients;
  for (const GraphNode& node : program.graph.nodes) {
    const bool disabled = disables_gradients(node);
    for_each_argument(node, [&](ValueId value) {
      (disabled ? without_gradients : with_gradients)[static_cast<size_t>(value)] = true;
    });
    if (!disabled || loss == kNoValue) continue;
    for_each_result(node, [&](ValueId value) {
      if (value == loss)
        context.warn(
            "the loss is computed in a region without gradients: a reentrant checkpoint in a default export "
            "gives this; export with use_reentrant=False or strict=True");
    });
  }

  size_t count = 0;
  std::string first;
  for (const ProgramInput& input : program.inputs) {
    if (input.kind != ProgramInput::Kind::parameter) continue;
    const auto value = static_cast<size_t>(input.value);
    if (!without_gradients[value] || with_gradients[value]) continue;
    if (!program.graph.values[value].tensor->requires_grad) continue;
    if (count++ == 0) first = input.name;
  }
  if (count)
    context.warn(
        fmt::format("parameters that require gradients are used only where gradients are disabled ({}): {}{}",
                    count, first, count > 1 ? ", …" : ""));
}

void warn_of_disabled_autocast(Pt2Context& context) {
  const auto& nodes = context.program.graph.nodes;
  const auto count = std::count_if(nodes.begin(), nodes.end(), is_disabled_autocast);
  if (count)
    context.warn(
        fmt::format("autocast regions for cuda are disabled in the file ({}): torch.autocast disables "
                    "itself when it finds no GPU; if they should cast, export where there is one",
                    count));
}

// Full-precision tensors in, low precision out, and no argument that asks for it.
bool casts_silently(const GraphNode& node, const Graph& graph) {
  if (!node.op.starts_with("aten::")) return false;
  if (node.operand_named("dtype")) return false;
  const auto dtype_of = [&](ValueId value) -> std::optional<DType> {
    const auto& tensor = graph.values[static_cast<size_t>(value)].tensor;
    return tensor ? std::optional(tensor->dtype) : std::nullopt;
  };
  bool any_full = false, any_reduced = false;
  for_each_argument(node, [&](ValueId value) {
    const auto dtype = dtype_of(value);
    any_full |= dtype == DType::f32;
    any_reduced |= dtype && is_reduced_floating(*dtype);
  });
  if (!any_full || any_reduced) return false;
  bool reduces = false;
  for_each_result(node, [&](ValueId value) {
    const auto dtype = dtype_of(value);
    reduces |= dtype && is_reduced_floating(*dtype);
  });
  return reduces;
}

void warn_of_outer_autocast(Pt2Context& context) {
  const Graph& graph = context.program.graph;
  for (const GraphNode& node : graph.nodes)
    if (casts_silently(node, graph)) {
      context.warn(
          fmt::format("{} takes float32 and gives low precision: the model was exported inside "
                      "torch.autocast, which leaves no casts in the file; export it outside",
                      node.op));
      return;
    }
}

// An export does not say whether the model's calls are compiled, nor what masks of blocks hold.
void warn_of_flex_attention(Pt2Context& context) {
  const auto count =
      std::ranges::count(context.program.graph.nodes, "metaprof::flex_attention", &GraphNode::op);
  if (count)
    context.warn(fmt::format(
        "calls of flex attention ({}) are taken to be compiled, as torch.compile(flex_attention), "
        "with the FLOPs of all pairs of queries and keys: what masks leave out is not in an export; "
        "calls that are not compiled take whole matrices of scores (metaprof run --save)",
        count));
}

}  // namespace

void warn_of_traps(Pt2Context& context) {
  warn_of_flex_attention(context);
  warn_of_lost_gradients(context);
  warn_of_disabled_autocast(context);
  warn_of_outer_autocast(context);
}

}  // namespace metaprof
