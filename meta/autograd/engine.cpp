#include "meta/autograd/engine.h"

#include <fmt/format.h>

#include <queue>

#include "meta/autograd/input_buffer.h"
#include "meta/autograd/state.h"
#include "meta/core/error.h"

namespace metaprof {
namespace {

// A gradient that the caller wants back, by the input of the node that receives it.
struct Capture {
  uint32_t input_nr;
  size_t result;
};

// What a running backward knows of a node.
struct NodeState {
  Node* node;
  uint32_t task_before, index_before;  // of an outer backward that the node belongs to, too
  int dependencies = 0;
  bool needed = false;   // run it; only asked where the caller named inputs
  bool waiting = false;  // it has received gradients
  std::vector<Capture> captures = {};
  InputBuffer inputs = InputBuffer(0);

  bool wanted() const { return needed || !captures.empty(); }
};

struct Ready {
  uint64_t sequence;
  uint32_t index;
};

struct RunsLater {
  bool operator()(const Ready& a, const Ready& b) const { return a.sequence < b.sequence; }
};

}  // namespace

struct GraphTask {
  Session& session;
  bool keep_graph;
  uint32_t serial;
  bool everything = true;  // no inputs were named: every node runs
  std::vector<NodeState> states = {};
  std::priority_queue<Ready, std::vector<Ready>, RunsLater> ready = {};
  Gradients captured = {};

  NodeState* find(const Node& node) { return node.task == serial ? &states[node.task_index] : nullptr; }
  NodeState& state(Node& node) {
    if (NodeState* known = find(node)) return *known;
    states.push_back({.node = &node, .task_before = node.task, .index_before = node.task_index});
    node.task = serial;
    node.task_index = static_cast<uint32_t>(states.size() - 1);
    return states.back();
  }
  ~GraphTask() {
    for (const NodeState& state : states) {
      state.node->task = state.task_before;
      state.node->task_index = state.index_before;
    }
  }
};

bool task_wants(const GraphTask* task, const Node& node) {
  if (!task || task->everything) return true;
  const NodeState* state = const_cast<GraphTask*>(task)->find(node);
  return state && state->wanted();
}

Tensor sum_to(Session& session, const Tensor& gradient, SizesView sizes) {
  if (sizes.empty()) return call<"sum">(session, gradient);
  const auto leading = gradient.sizes().size() - sizes.size();
  Sizes dims;
  for (size_t d = 0; d < leading; ++d) dims.push_back(int64_t(d));
  for (size_t d = leading; d < gradient.sizes().size(); ++d)
    if (sizes[d - leading] == 1 && gradient.sizes()[d] != 1) dims.push_back(int64_t(d));
  Tensor sum = gradient;
  if (!dims.empty()) sum = call<"sum.dim_IntList">(session, gradient, dims, true);
  if (leading > 0) sum = call<"view">(session, sum, Sizes(sizes));
  return sum;
}

namespace {

bool expands_to(SizesView sizes, SizesView target) {
  if (sizes.size() > target.size()) return false;
  for (size_t i = 1; i <= sizes.size(); ++i) {
    const int64_t size = sizes[sizes.size() - i];
    if (size != target[target.size() - i] && size != 1) return false;
  }
  return true;
}

// A gradient takes the sizes and dtype of what it is the gradient of.
void validate(Session& session, Gradients& outgoing, const Node& node) {
  if (outgoing.size() > node.next.size()) {
    fail("{}: returned {} gradients, expected {}", node.name(), outgoing.size(), node.next.size());
  }
  for (size_t i = 0; i < outgoing.size(); ++i) {
    const Edge& edge = node.next[i];
    Tensor& gradient = outgoing[i];
    if (!edge.valid() || !gradient.defined()) continue;
    const Geometry& wanted = edge.node->metadata[edge.input_nr];
    if (!wanted.defined() || gradient.is_sparse()) continue;
    if (gradient.sizes() != wanted->sizes) {
      if (!expands_to(wanted->sizes, gradient.sizes()))
        fail("{}: returned an invalid gradient at index {}: got {}, expected a shape that sums to {}",
             node.name(), i, to_string(SizesView(gradient.sizes())), to_string(SizesView(wanted->sizes)));
      gradient = sum_to(session, gradient, wanted->sizes);
    }
    if (gradient.dtype() != wanted->dtype) gradient = call<"to.dtype">(session, gradient, wanted->dtype);
  }
}

class Evaluation {
 public:
  explicit Evaluation(GraphTask& task) : task_(task), session_(task.session) {}

  void run() {
    while (!task_.ready.empty()) {
      NodeState& state = task_.states[task_.ready.top().index];
      task_.ready.pop();
      evaluate(Ref<Node>(state.node), std::move(state.inputs));
    }
  }

 private:
  void evaluate(const Ref<Node>& held, InputBuffer inputs) {
    Node& node = *held;
    session_.trace.add({.kind = Event::Kind::node, .id = node.record});
    Scoped<uint32_t> in_node(session_.node, node.record + 1);
    Scoped<uint32_t> in_module(session_.module, session_.trace.nodes[node.record].module);
    Scoped<uint16_t> on_stream(session_.stream, node.stream);
    if (capture(node, inputs)) {
      Gradients outgoing = call_node(node, std::move(inputs));
      if (!task_.keep_graph) node.release_variables();
      for (size_t i = 0; i < outgoing.size(); ++i) route(node, i, std::move(outgoing[i]));
    }
    session_.trace.add({.kind = Event::Kind::end, .id = node.record});
  }

  // Takes the gradients that the caller wants; false if the node itself need not run.
  bool capture(const Node& node, const InputBuffer& inputs) {
    if (task_.everything) return true;
    const NodeState& state = *task_.find(node);
    for (const Capture& capture : state.captures) task_.captured[capture.result] = inputs[capture.input_nr];
    return state.needed;
  }

  // The incoming gradients live until the node has run and its gradients are validated.
  Gradients call_node(Node& node, InputBuffer inputs) {
    Gradients incoming = inputs.take();
    if (node.hooks)
      for (auto& hook : node.hooks->before) hook(incoming);
    Gradients outgoing = node.apply(incoming);
    validate(session_, outgoing, node);
    if (node.hooks)
      for (auto& hook : node.hooks->after) hook(outgoing, incoming);
    return outgoing;
  }

  void route(const Node& node, size_t index, Tensor gradient) {
    const Edge& edge = node.next[index];
    if (!edge.valid()) return;
    Node& target = *edge.node;
    NodeState& state = *task_.find(target);
    const bool complete = --state.dependencies == 0;
    if (!task_.everything && !state.wanted()) return;
    if (!state.waiting) {
      state.waiting = true;
      state.inputs = InputBuffer(target.inputs());
    }
    state.inputs.add(session_, edge.input_nr, std::move(gradient), {node.device, node.stream},
                     {target.device, target.stream});
    if (complete) task_.ready.push({target.sequence, target.task_index});
  }

  GraphTask& task_;
  Session& session_;
};

void count_dependencies(GraphTask& task, std::span<const Edge> roots) {
  std::vector<Node*> stack;
  auto visit = [&](Node& node) {
    if (task.find(node)) return;
    task.state(node);
    stack.push_back(&node);
  };
  for (const Edge& root : roots) visit(*root.node);
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const Edge& edge : node->next) {
      if (!edge.valid()) continue;
      visit(*edge.node);
      ++task.find(*edge.node)->dependencies;
    }
  }
}

// A node is needed if some input can be reached from it. Post-order walk without recursion.
void plan_execution(GraphTask& task, std::span<const Edge> roots, std::span<const Edge> inputs,
                    bool accumulate) {
  task.everything = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    NodeState& state = task.state(*inputs[i].node);
    if (accumulate) {
      state.needed = true;
    } else {
      state.captures.push_back({inputs[i].input_nr, i});
    }
  }
  struct Level {
    Node* node;
    size_t next;
  };
  std::vector<char> seen(task.states.size(), 0);
  std::vector<Level> stack;
  auto push = [&](Node* node) {
    if (!std::exchange(seen[node->task_index], 1)) stack.push_back({node, 0});
  };
  for (const Edge& root : roots) {
    push(root.node.get());
    while (!stack.empty()) {
      Level& level = stack.back();
      if (level.next < level.node->next.size()) {
        const Edge& edge = level.node->next[level.next++];
        if (edge.valid()) push(edge.node.get());
        continue;
      }
      for (const Edge& edge : level.node->next)
        if (edge.valid() && task.find(*edge.node)->wanted()) task.find(*level.node)->needed = true;
      stack.pop_back();
    }
  }
}

Tensor root_gradient(Session& session, const Tensor& root, std::span<const Tensor> gradients, size_t i) {
  if (i < gradients.size() && gradients[i].defined()) return gradients[i];
  if (root.numel() != 1)
    fail("backward: a gradient can be made up only for outputs of one element; got {}", describe(root));
  Scoped<Category> born_as(session.category, Category::temporary);
  return call<"ones_like">(session, root, Value(), Value(), Value(), Value(), MemoryFormat::preserve);
}

// Several roots hang from one node that hands out their gradients.
class GraphRoot final : public Node {
 public:
  GraphRoot(Session& session, std::span<const Edge> roots, Gradients gradients)
      : Node(session, "GraphRoot", 0), gradients_(std::move(gradients)) {
    for (const Edge& root : roots) add_next(root);
    record_edges();
  }
  Gradients apply(Gradients&) override { return gradients_; }

 private:
  Gradients gradients_;
};

// The node that begins: the root's own, or one that hands out the gradients of several roots. Held by the
// caller.
Ref<Node> start(GraphTask& task, std::span<const Edge> roots, const Gradients& gradients) {
  Session& session = task.session;
  if (roots.size() == 1) {
    Ref<Node> node = roots[0].node;
    NodeState& state = task.state(*node);
    state.inputs = InputBuffer(node->inputs());
    state.waiting = true;
    const Stream own{node->device, node->stream};
    state.inputs.add(session, roots[0].input_nr, gradients[0], own, own);
    task.ready.push({node->sequence, node->task_index});
    return node;
  }
  Ref<Node> node = make<GraphRoot>(session, roots, gradients);
  task.state(*node).needed = true;
  for (const Edge& edge : roots) ++task.find(*edge.node)->dependencies;
  task.ready.push({node->sequence, node->task_index});
  return node;
}

}  // namespace

Gradients backward(Session& session, std::span<const Tensor> roots, std::span<const Tensor> gradients,
                   std::span<const Tensor> inputs, const BackwardOptions& options) {
  AutogradState& state = autograd_state(session);
  std::vector<Edge> root_edges, input_edges;
  Gradients root_gradients;
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!roots[i].requires_grad()) fail("backward: output {} does not require grad and has no grad_fn", i);
    root_gradients.push_back(root_gradient(session, roots[i], gradients, i));
    root_edges.push_back(gradient_edge(roots[i]));
  }
  for (const Tensor& input : inputs) {
    if (!input.requires_grad()) fail("backward: an input does not require grad: {}", describe(input));
    input_edges.push_back(gradient_edge(input));
  }
  GraphTask task{.session = session,
                 .keep_graph = options.retain_graph || options.create_graph,
                 .serial = ++state.tasks};
  task.captured.resize(options.accumulate ? 0 : inputs.size());
  count_dependencies(task, root_edges);
  if (!inputs.empty()) plan_execution(task, root_edges, input_edges, options.accumulate);

  Scoped<bool> grad_mode(session.modes.grad, options.create_graph);
  Scoped<Category> born_as(session.category, Category::temporary);
  Scoped<bool> thread(session.backward_thread, session.profile.type == DeviceType::cuda);
  Scoped<GraphTask*> running(state.task, &task);
  Scoped<uint32_t> number(state.running, task.serial);
  Scoped<uint32_t> deeper(state.reentrant_depth, state.reentrant_depth + 1);
  Scoped<uint16_t> depth(session.depth, 0);
  const Ref<Node> first = start(task, root_edges, root_gradients);
  Evaluation(task).run();
  for (size_t i = 0; i < task.captured.size(); ++i) {
    if (!task.captured[i].defined() && !options.allow_unused)
      fail("grad: input {} was not used in the graph; set allow_unused if that is meant", i);
  }
  return std::move(task.captured);
}

Gradients grad(Session& session, std::span<const Tensor> outputs, std::span<const Tensor> inputs,
               std::span<const Tensor> gradients, BackwardOptions options) {
  options.accumulate = false;
  if (options.create_graph) options.retain_graph = true;
  return backward(session, outputs, gradients, inputs, options);
}

}  // namespace metaprof
