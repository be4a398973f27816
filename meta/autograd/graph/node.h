#pragma once
// Nodes and edges of the autograd graph. A node owns the nodes behind it; destroying a chain of a million
// nodes does not recurse.

#include <functional>

#include "meta/session/call.h"

namespace metaprof {

class Node;
class SavedTensor;

/// Where a gradient goes: input `input_nr` of a node, or nowhere.
struct Edge {
  Ref<Node> node;
  uint32_t input_nr = 0;
  bool valid() const { return bool(node); }
};

/// Sees a gradient; a defined result replaces it.
using GradientHook = std::function<Tensor(const Tensor& gradient)>;
/// May replace incoming gradients.
using NodePreHook = std::function<void(Gradients& incoming)>;
/// May replace outgoing gradients.
using NodePostHook = std::function<void(Gradients& outgoing, const Gradients& incoming)>;
using AccumulatedHook = std::function<void(const Tensor& leaf)>;

template <class Function>
using HookList = std::vector<std::shared_ptr<Function>>;  // a hook that was taken out is an empty function

/// What is registered on a node and on the tensors that it made (meta/autograd/graph/hooks.h).
struct NodeHooks {
  struct OfTensor {
    uint32_t output_nr;
    std::shared_ptr<GradientHook> function;
    const TensorImpl* tensor = nullptr;  // of `retain`; never followed
  };
  std::vector<OfTensor> gradient, retain;
  HookList<NodePreHook> before;
  HookList<NodePostHook> after;
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

  // What the engine looks at for every node lies together.
  uint32_t task = 0, task_index = 0;  ///< the running backward that it belongs to, and its place there
  uint64_t sequence;
  uint32_t record;  ///< index into Trace::nodes
  uint32_t maker;   ///< 1 + index into Trace::calls
  uint16_t stream;  ///< the stream that was current when it was made
  /// Its outputs are tensors of a class of its own: of several gradients for one a new tensor is made.
  bool adds_apart = false;
  Device device;  ///< of its first output that is not on the host
  std::unique_ptr<NodeHooks> hooks;
  SmallVector<Edge, 3> next;  ///< one per gradient that `apply` returns
  /// Geometries of the forward's outputs: one per incoming gradient; may be undefined.
  SmallVector<Geometry, 1> outputs;
  Session& session;

  std::string_view name() const { return session.trace.text(session.trace.nodes[record].name); }
  size_t inputs() const { return outputs.size(); }

  /// Gradients for `next`, from gradients of the outputs (some undefined).
  virtual Gradients apply(Gradients& incoming) = 0;
  /// Lets go of what was saved for backward.
  virtual void release_variables() {}
  /// The leaf whose gradient ends here, if any does.
  virtual const TensorImpl* leaf() const { return nullptr; }
  /// For messages: the argument or result of the forward that this is.
  virtual std::string_view name_of(const SavedTensor&) const { return {}; }

  /// Zeros for incoming gradients that are undefined, as custom functions get them.
  void materialise(Gradients& incoming);
  void materialise(Gradients& incoming, size_t i);

  void add_next(Edge edge) { next.push_back(std::move(edge)); }
  /// Registers an output: its gradient will be incoming gradient number `result`.
  uint32_t add_output(const Tensor& tensor);
  void add_undefined_output() { outputs.push_back(Geometry()); }
  /// Writes the edges into the trace; once, when all are there.
  void record_edges();
  NodeHooks& ensure_hooks() {
    if (!hooks) hooks = std::make_unique<NodeHooks>();
    return *hooks;
  }

 protected:
  void destroy() override;
};

inline Node* grad_fn(const Tensor& tensor) { return static_cast<Node*>(tensor->grad_fn.get()); }
/// Makes `tensor` output `output_nr` of a node.
void set_gradient_edge(const Tensor& tensor, Edge edge);

}  // namespace metaprof
