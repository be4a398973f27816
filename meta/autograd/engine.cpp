#include "meta/autograd/engine.h"

#include <fmt/format.h>

#include <queue>
#include <unordered_map>
#include <unordered_set>

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

struct ExecutionInfo {
  bool needed = false;  // run it
  std::vector<Capture> captures;
  bool wanted() const { return needed || !captures.empty(); }
};

struct Ready {
  Ref<Node> node;
  InputBuffer inputs;
};

struct RunsLater {
  bool operator()(const Ready& a, const Ready& b) const { return a.node->sequence < b.node->sequence; }
};

}  // namespace

struct GraphTask {
  Session& session;
  bool keep_graph;
  std::unordered_map<const Node*, int> dependencies = {};
  std::unordered_map<const Node*, InputBuffer> not_ready = {};
  std::unordered_map<const Node*, ExecutionInfo> execution = {};  // empty: everything runs
  std::priority_queue<Ready, std::vector<Ready>, RunsLater> ready = {};
  Gradients captured = {};
};

bool task_wants(const GraphTask* task, const Node& node) {
  if (!task || task->execution.empty()) return true;
  auto found = task->execution.find(&node);
  return found != task->execution.end() && found->second.wanted();
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
      // priority_queue hands out const references; the element is moved out just before it is popped.
      Ready ready = std::move(const_cast<Ready&>(task_.ready.top()));
      task_.ready.pop();
      evaluate(*ready.node, std::move(ready.inputs));
    }
  }

 private:
  void evaluate(Node& node, InputBuffer inputs) {
    session_.trace.add({.kind = Event::Kind::node, .id = node.record});
    Scoped<uint32_t> in_node(session_.node, node.record + 1);
    Scoped<uint32_t> in_module(session_.module, session_.trace.nodes[node.record].module);
    Scoped<uint16_t> on_stream(session_.stream, node.stream);
    if (!capture(node, inputs)) {
      session_.trace.add({.kind = Event::Kind::end, .id = node.record});
      return;
    }
    Gradients outgoing = call_node(node, std::move(inputs));
    if (!task_.keep_graph) node.release_variables();
    for (size_t i = 0; i < outgoing.size(); ++i) route(node, i, std::move(outgoing[i]));
    outgoing.clear();
    session_.trace.add({.kind = Event::Kind::end, .id = node.record});
  }

  // Takes the gradients that the caller wants; false if the node itself need not run.
  bool capture(const Node& node, const InputBuffer& inputs) {
    if (task_.execution.empty()) return true;
    const ExecutionInfo& info = task_.execution[&node];
    for (const Capture& capture : info.captures) task_.captured[capture.result] = inputs[capture.input_nr];
    return info.needed;
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
    const Node* target = edge.node.get();
    auto dependency = task_.dependencies.find(target);
    const bool complete = --dependency->second == 0;
    if (!task_wants(&task_, *target)) return;
    auto waiting = task_.not_ready.find(target);
    if (waiting == task_.not_ready.end())
      waiting = task_.not_ready.emplace(target, InputBuffer(target->inputs())).first;
    waiting->second.add(session_, edge.input_nr, std::move(gradient), {node.device, node.stream},
                        {target->device, target->stream});
    if (!complete) return;
    InputBuffer inputs = std::move(waiting->second);
    task_.not_ready.erase(waiting);
    task_.ready.push({edge.node, std::move(inputs)});
  }

  GraphTask& task_;
  Session& session_;
};

void count_dependencies(GraphTask& task, std::span<const Edge> roots) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> stack;
  for (const Edge& root : roots)
    if (seen.insert(root.node.get()).second) stack.push_back(root.node.get());
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const Edge& edge : node->next) {
      if (!edge.valid()) continue;
      ++task.dependencies[edge.node.get()];
      if (seen.insert(edge.node.get()).second) stack.push_back(edge.node.get());
    }
  }
}

// A node is needed if some input can be reached from it. Post-order walk without recursion.
void plan_execution(GraphTask& task, std::span<const Edge> roots, std::span<const Edge> inputs,
                    bool accumulate) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    ExecutionInfo& info = task.execution[inputs[i].node.get()];
    if (accumulate) {
      info.needed = true;
    } else {
      info.captures.push_back({inputs[i].input_nr, i});
    }
  }
  struct Frame {
    const Node* node;
    size_t next;
  };
  std::unordered_set<const Node*> seen;
  std::vector<Frame> stack;
  auto push = [&](const Node* node) {
    if (seen.insert(node).second) stack.push_back({node, 0});
  };
  for (const Edge& root : roots) {
    push(root.node.get());
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.node->next.size()) {
        const Edge& edge = frame.node->next[frame.next++];
        if (edge.valid()) push(edge.node.get());
        continue;
      }
      bool needed = false;
      for (const Edge& edge : frame.node->next) {
        if (!edge.valid()) continue;
        auto found = task.execution.find(edge.node.get());
        needed |= found != task.execution.end() && found->second.wanted();
      }
      if (needed) task.execution[frame.node].needed = true;
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

void start(GraphTask& task, std::span<const Edge> roots, const Gradients& gradients) {
  Session& session = task.session;
  if (roots.size() == 1) {
    InputBuffer inputs(roots[0].node->inputs());
    const Stream own{roots[0].node->device, roots[0].node->stream};
    inputs.add(session, roots[0].input_nr, gradients[0], own, own);
    task.ready.push({roots[0].node, std::move(inputs)});
    return;
  }
  Ref<Node> root = make<GraphRoot>(session, roots, gradients);
  if (!task.execution.empty()) task.execution[root.get()].needed = true;
  for (const Edge& edge : roots) ++task.dependencies[edge.node.get()];
  task.ready.push({root, InputBuffer(0)});
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
  GraphTask task{.session = session, .keep_graph = options.retain_graph || options.create_graph};
  task.captured.resize(options.accumulate ? 0 : inputs.size());
  count_dependencies(task, root_edges);
  if (!inputs.empty()) plan_execution(task, root_edges, input_edges, options.accumulate);

  Scoped<bool> grad_mode(session.modes.grad, options.create_graph);
  Scoped<Category> born_as(session.category, Category::temporary);
  Scoped<bool> thread(session.backward_thread, session.profile.type == DeviceType::cuda);
  Scoped<GraphTask*> running(state.task, &task);
  Scoped<uint32_t> deeper(state.reentrant_depth, state.reentrant_depth + 1);
  Scoped<uint16_t> depth(session.depth, 0);
  start(task, root_edges, root_gradients);
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
