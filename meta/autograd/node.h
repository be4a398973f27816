#pragma once
// Nodes and edges of the autograd graph. A node owns the nodes behind it; destroying a chain of a million
// nodes does not recurse.

#include "meta/op/call.h"

namespace metaprof {

class Node;

/// Where a gradient goes: input `input_nr` of a node, or nowhere.
struct Edge {
  Ref<Node> node;
  uint32_t input_nr = 0;
  bool valid() const { return bool(node); }
};

/// A hook on a node: before it runs it may replace the incoming gradients, after it the outgoing ones.
struct NodeHooks {
  std::vector<std::function<void(Gradients&)>> before;
  std::vector<std::function<void(Gradients& outgoing, const Gradients& incoming)>> after;
};

/// Runs first of all that are ready: AccumulateGrad.
inline constexpr uint64_t kFirst = UINT64_MAX;

class Node : public Counted {
 public:
  /// `maker`: 1 + index of the call that makes it. Takes the session's next sequence number unless one is
  /// given.
  Node(Session& session, std::string_view name, uint32_t maker, std::optional<uint64_t> sequence = {})
      : Node(session, session.trace.intern(name), maker, sequence) {}
  /// `name`: text of the trace.
  Node(Session& session, uint32_t name, uint32_t maker, std::optional<uint64_t> sequence = {});

  Session& session;
  uint64_t sequence;
  uint32_t record;            ///< index into Trace::nodes
  uint32_t maker;             ///< 1 + index into Trace::calls
  uint16_t stream;            ///< the stream that was current when it was made
  Device device;              ///< of its first output
  SmallVector<Edge, 3> next;  ///< one per gradient that `apply` returns
  SmallVector<Geometry, 1>
      metadata;  ///< of the forward's outputs: one per incoming gradient; may be undefined
  std::unique_ptr<NodeHooks> hooks;
  uint32_t task = 0, task_index = 0;  ///< the running backward that it belongs to, and its place there

  std::string_view name() const { return session.trace.text(session.trace.nodes[record].name); }
  size_t inputs() const { return metadata.size(); }

  /// Gradients for `next`, from gradients of the outputs (some undefined).
  virtual Gradients apply(Gradients& incoming) = 0;
  /// Lets go of what was saved for backward.
  virtual void release_variables() {}

  void add_next(Edge edge) { next.push_back(std::move(edge)); }
  /// Registers an output: its gradient will be incoming gradient number `result`.
  uint32_t add_output(const Tensor& tensor);
  void add_undefined_output() { metadata.push_back(Geometry()); }
  /// Writes the edges into the trace; once, when all are there.
  void record_edges();
  NodeHooks& ensure_hooks() {
    if (!hooks) hooks = std::make_unique<NodeHooks>();
    return *hooks;
  }

 protected:
  void destroy() override;
};

/// The node of a tensor that requires grad: grad_fn, or a leaf's (single) AccumulateGrad.
Edge gradient_edge(const Tensor& tensor);
inline Node* grad_fn(const Tensor& tensor) { return static_cast<Node*>(tensor->grad_fn.get()); }
/// Makes `tensor` output `output_nr` of a node.
void set_gradient_edge(const Tensor& tensor, Edge edge);

}  // namespace metaprof
