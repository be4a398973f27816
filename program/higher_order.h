#pragma once
// Higher-order operators that run the graph inside them in some mode, and nothing else: how torch.export
// writes regions of a model's source.

#include <optional>
#include <string_view>

#include "program/program.h"

namespace metaprof {

/// A call of such an operator, taken apart. It lives as long as the node.
struct RegionCall {
  enum class Kind : uint8_t {
    gradients,  ///< `with torch.set_grad_enabled(enabled):`
    autocast,   ///< `with torch.autocast(device, dtype, enabled):`
    checkpoint  ///< `torch.utils.checkpoint.checkpoint(body, …)`
  };
  Kind kind = Kind::gradients;
  bool enabled = true;
  std::string_view device;     ///< of autocast: "cuda"
  std::optional<DType> dtype;  ///< of autocast; nothing: the device's default
  const Graph* body = nullptr;
  size_t first_argument = 0;  ///< index of the operand that is the body's first input
};

/// Nothing: the node calls another operator, or its operands are not those of the region.
std::optional<RegionCall> region_call(const GraphNode& node);

}  // namespace metaprof
