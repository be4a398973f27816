#include "program/higher_order.h"

#include <algorithm>
#include <span>
#include <utility>

namespace metaprof {
namespace {

constexpr struct {
  std::string_view op;
  RegionCall::Kind kind;
} kRegions[] = {{"higher_order::wrap_with_set_grad_enabled", RegionCall::Kind::gradients},
                {"higher_order::wrap_with_autocast", RegionCall::Kind::autocast},
                {"higher_order::tag_activation_checkpoint", RegionCall::Kind::checkpoint},
                {"higher_order::cond", RegionCall::Kind::branch},
                {"higher_order::while_loop", RegionCall::Kind::loop},
                {"higher_order::scan", RegionCall::Kind::scan},
                {"higher_order::map_impl", RegionCall::Kind::map}};

// What stands before the body. False: this is not how the region is written.
bool read_mode(std::span<const Operand> before, RegionCall& call) {
  using Kind = Value::Kind;
  const auto is = [&](size_t i, Kind kind) {
    return before[i].kind == Operand::Kind::constant && before[i].constant.kind() == kind;
  };
  switch (call.kind) {
    case RegionCall::Kind::checkpoint: return true;
    case RegionCall::Kind::loop:
    case RegionCall::Kind::scan:
    case RegionCall::Kind::map: return before.empty();
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
  if (call.kind != RegionCall::Kind::branch && call.kind != RegionCall::Kind::loop) return call;
  if (call.first_argument >= node.operands.size()) return std::nullopt;
  const Graph* second = node.operands[call.first_argument++].graph.get();
  if (call.kind == RegionCall::Kind::loop)
    call.condition = std::exchange(call.body, second);
  else
    call.otherwise = second;
  return second ? std::optional(call) : std::nullopt;
}

bool is_control_flow(RegionCall::Kind kind) {
  using Kind = RegionCall::Kind;
  return kind == Kind::branch || kind == Kind::loop || kind == Kind::scan || kind == Kind::map;
}

bool has_region(const Graph& graph, RegionCall::Kind kind) {
  return std::ranges::any_of(graph.nodes, [kind](const GraphNode& node) {
    const auto call = region_call(node);
    return (call && call->kind == kind) || std::ranges::any_of(node.operands, [kind](const Operand& operand) {
             return operand.kind == Operand::Kind::graph && has_region(*operand.graph, kind);
           });
  });
}

}  // namespace metaprof
