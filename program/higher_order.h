#pragma once
// Higher-order operators that run a graph inside them, in some mode or on some condition: how torch.export writes
// regions and branches of a model's source.

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
    branch       ///< `torch.cond(condition, body, otherwise, …)`
  };
  Kind kind = Kind::gradients;
  bool enabled = true;
  std::string_view device;     ///< of autocast: "cuda"
  std::optional<DType> dtype;  ///< of autocast; nothing: the device's default
  const Graph* body = nullptr;
  const Graph* otherwise = nullptr;  ///< of a branch: what is called where the condition is false
  size_t first_argument = 0;         ///< index of the operand that is the body's first input
};

/// Nothing: the node calls another operator, or its operands are not those of the region.
std::optional<RegionCall> region_call(const GraphNode& node);

/// Whether a call of torch.cond is in the graph, or in one inside it.
bool has_branches(const Graph& graph);

}  // namespace metaprof
