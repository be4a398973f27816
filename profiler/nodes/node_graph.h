#pragma once
// The nodes of a model, and which of them each event of the first forward and the first backward belongs to.
//
// A node is an input of the model, a call of a module or a call of an operator. Which calls are nodes is the
// granularity:
//
//   module     a call of a leaf module (one that calls no other module, and is not the whole model); what is
//              called outside of leaf modules are nodes as with `function`
//   function   every operator as the program calls it, composite or not: aten::linear
//   operator   what does the work: the outermost operators that are not composite, or allocate by
//              themselves: aten::addmm
//
// An event of the forward belongs to the node whose call it lies in. An event of the backward belongs to the
// node whose call made the autograd node that the engine evaluates; AccumulateGrad belongs to the node of the
// first autograd node that leads to it. What a checkpoint computes again belongs to the node that it repeats:
// the n-th call with the same module and operator.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meta/trace/trace.h"

namespace metaprof {

enum class Granularity : uint8_t { module, function, op };
std::string_view to_string(Granularity);
/// "module", "function", "operator"; nothing for another word.
std::optional<Granularity> granularity_named(std::string_view word);

inline constexpr int32_t kNoNode = -1;

struct ModelNode {
  enum class Kind : uint8_t { input, module, call };
  Kind kind = Kind::call;
  uint32_t module = 0;   ///< text: path of the module; of an operator: of the module that calls it
  uint32_t op = 0;       ///< text: of the operator, the autograd-free name; 0 for modules and inputs
  uint32_t storage = 0;  ///< of an input
  int32_t repeats = 0;   ///< how many earlier nodes have the same module and operator
};

/// Events `begin` … `end` - 1 of the trace.
struct EventRange {
  size_t begin = 0, end = 0;
};

struct NodeGraph {
  std::vector<ModelNode> nodes;  ///< inputs, then calls in order
  EventRange forward, backward;  ///< the first of each
  std::vector<int32_t> owner;    ///< per event of the trace: its node, or kNoNode
  std::vector<bool> again;       ///< per event: it is a part of a forward that is computed again

  /// The node to which an autograd node belongs, or kNoNode.
  std::vector<int32_t> of_autograd_node;
};

/// Inputs are those on `device` that the forward reads.
NodeGraph node_graph(const Trace& trace, Device device, Granularity granularity);

/// "model.conv1", "model: aten::add.Tensor", "input x"; a repeated one ends with "#2".
std::string node_name(const Trace& trace, const ModelNode& node);

}  // namespace metaprof
