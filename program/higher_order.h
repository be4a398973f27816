#pragma once
// Higher-order operators that run a graph inside them, in some mode, on some condition or again and again: how torch.export
// writes regions, branches and loops of a model's source.

#include <optional>
#include <string_view>

#include "program/program.h"

namespace metaprof {

/// A call of such an operator, taken apart. It lives as long as the node.
struct RegionCall {
  enum class Kind : uint8_t {
    gradients,   ///< `with torch.set_grad_enabled(enabled):`
    autocast,    ///< `with torch.autocast(device, dtype, enabled):`
    checkpoint,  ///< `torch.utils.checkpoint.checkpoint(body, …)`
    branch,      ///< `torch.cond(condition, body, otherwise, …)`
    loop,  ///< `while_loop(condition, body, carried, others)` of torch._higher_order_ops, as those below
    scan,  ///< `scan(body, carried, slices, others)`
    map    ///< `map(body, slices, others)`
  };
  Kind kind = Kind::gradients;
  bool enabled = true;
  std::string_view device;     ///< of autocast: "cuda"
  std::optional<DType> dtype;  ///< of autocast; nothing: the device's default
  const Graph* body = nullptr;
  const Graph* otherwise = nullptr;  ///< of a branch: what is called where the condition is false
  const Graph* condition = nullptr;  ///< of a loop: whether it goes on; takes what the body takes
  size_t first_argument = 0;         ///< index of the operand that is the body's first input
};

/// Nothing: the node calls another operator, or its operands are not those of the region.
std::optional<RegionCall> region_call(const GraphNode& node);

/// It is compiled to a graph before it runs, also where the model runs eagerly: its values go after their last use.
bool is_control_flow(RegionCall::Kind kind);

/// Whether such a call is in the graph, or in one inside it.
bool has_region(const Graph& graph, RegionCall::Kind kind);

}  // namespace metaprof
