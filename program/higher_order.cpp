#include "program/higher_order.h"

#include <algorithm>
#include <span>

namespace metaprof {
namespace {

constexpr struct {
  std::string_view op;
  RegionCall::Kind kind;
} kRegions[] = {{"higher_order::wrap_with_set_grad_enabled", RegionCall::Kind::gradients},
                {"higher_order::wrap_with_autocast", RegionCall::Kind::autocast},
                {"higher_order::tag_activation_checkpoint", RegionCall::Kind::checkpoint},
                {"higher_order::cond", RegionCall::Kind::branch}};

// What stands before the body. False: this is not how the region is written.
bool read_mode(std::span<const Operand> before, RegionCall& call) {
  using Kind = Value::Kind;
  const auto is = [&](size_t i, Kind kind) {
    return before[i].kind == Operand::Kind::constant && before[i].constant.kind() == kind;
  };
  switch (call.kind) {
    case RegionCall::Kind::checkpoint: return true;
    case RegionCall::Kind::branch: return before.size() == 1;  // cond(condition, body, otherwise, tensors)
    case RegionCall::Kind::gradients:                          // set_grad_enabled(enabled, body, tensors…)
      if (before.empty() || !is(0, Kind::boolean)) return false;
      call.enabled = before[0].constant.boolean();
      return true;
    case RegionCall::Kind::autocast:  // autocast(device, dtype, enabled, cache_enabled, body, tensors…)
      if (before.size() < 3 || !is(2, Kind::boolean)) return false;
      if (is(0, Kind::string)) call.device = before[0].constant.string();
      if (is(1, Kind::integer)) call.dtype = dtype_numbered(before[1].constant.integer());
      call.enabled = before[2].constant.boolean();
      return true;
  }
  return false;
}

}  // namespace

std::optional<RegionCall> region_call(const GraphNode& node) {
  const auto region = std::ranges::find(kRegions, node.op, [](const auto& row) { return row.op; });
  if (region == std::end(kRegions)) return std::nullopt;
  const auto body = std::ranges::find(node.operands, Operand::Kind::graph, &Operand::kind);
  if (body == node.operands.end()) return std::nullopt;
  RegionCall call{.kind = region->kind, .device = {}, .dtype = {}, .body = body->graph.get()};
  call.first_argument = static_cast<size_t>(body - node.operands.begin()) + 1;
  if (!read_mode(std::span(node.operands).first(call.first_argument - 1), call)) return std::nullopt;
  if (call.kind != RegionCall::Kind::branch) return call;
  if (call.first_argument >= node.operands.size()) return std::nullopt;
  call.otherwise = node.operands[call.first_argument++].graph.get();
  return call.otherwise ? std::optional(call) : std::nullopt;
}

bool has_branches(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const GraphNode& node) {
    const auto call = region_call(node);
    return (call && call->kind == RegionCall::Kind::branch) ||
           std::ranges::any_of(node.operands, [](const Operand& operand) {
             return operand.kind == Operand::Kind::graph && has_branches(*operand.graph);
           });
  });
}

}  // namespace metaprof
