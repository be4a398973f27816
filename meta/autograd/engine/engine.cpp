#include "meta/autograd/engine/engine.h"

#include <fmt/format.h>

#include "core/error.h"
#include "meta/autograd/engine/graph_task.h"
#include "meta/autograd/engine/op_node.h"
#include "meta/autograd/graph/hooks.h"
#include "meta/autograd/graph/run_hooks.h"
#include "meta/autograd/graph/state.h"
#include "meta/autograd/graph/views.h"

namespace metaprof {

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

}  // namespace

void fit_gradients(Session& session, Gradients& outgoing, const Node& node) {
  if (outgoing.size() > node.next.size()) {
    fail("{}: returned {} gradients, expected {}", node.name(), outgoing.size(), node.next.size());
  }
  for (size_t i = 0; i < outgoing.size(); ++i) {
    const Edge& edge = node.next[i];
    Tensor& gradient = outgoing[i];
    if (!edge.valid() || !gradient.defined()) continue;
    const Geometry& wanted = edge.node->outputs[edge.input_nr];
    if (!wanted.defined()) continue;
    if (gradient->layout != wanted->layout && gradient.is_sparse() && gradient->layout != Layout::sparse)
      fail("{}: returned an invalid gradient at index {}: a {} tensor for one that is {}", node.name(), i,
           name_of(gradient->layout), name_of(wanted->layout));
    if (gradient.is_sparse()) continue;
    if (gradient.sizes() != wanted->sizes) {
      if (!expands_to(wanted->sizes, gradient.sizes()))
        fail("{}: returned an invalid gradient at index {}: got {}, expected a shape that sums to {}",
             node.name(), i, to_string(SizesView(gradient.sizes())), to_string(SizesView(wanted->sizes)));
      gradient = sum_to(session, gradient, wanted->sizes);
    }
    if (gradient.dtype() != wanted->dtype) gradient = call<"to.dtype">(session, gradient, wanted->dtype);
  }
}

namespace {

// "AddmmBackward0 was made by aten::addmm in 'fc'", and so on for a node that was made while another one ran.
std::string origin_of(const Trace& trace, uint32_t record) {
  const NodeRecord& node = trace.nodes[record];
  std::string text(trace.text(node.name));
  if (node.call == 0) return text + " was made by no call";
  const CallRecord& maker = trace.calls[node.call - 1];
  text += fmt::format(" was made by {}", trace.text(maker.op));
  if (maker.module != 0) text += fmt::format(" in '{}'", trace.text(maker.module));
  if (maker.node != 0) text += fmt::format("; {}", origin_of(trace, maker.node - 1));
  return text;
}

// A graph was made long ago and is walked once: what the next nodes lie in is asked for while this one runs.
// The nodes behind the targets now, and what the targets' gradients are compared with, whose address was
// fetched with the target one node before.
void fetch_ahead(const Node& node) {
  constexpr size_t kLine = 64, kMostEdges = 3;
  auto fetch = [](const void* object, size_t bytes) {
    for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(static_cast<const char*>(object) + at);
  };
  for (size_t i = 0; i < std::min(node.next.size(), kMostEdges); ++i) {
    if (!node.next[i].valid()) continue;
    const Node& target = *node.next[i].node;
    if (!target.outputs.empty() && target.outputs[0].get())
      fetch(target.outputs[0].get(), sizeof(TensorImpl));
    for (size_t j = 0; j < std::min(target.next.size(), kMostEdges); ++j)
      if (target.next[j].valid()) fetch(target.next[j].node.get(), sizeof(OpNode));
  }
}

// A node ends, whether its formula returns or not.
struct EndOfNode {
  Trace& trace;
  uint32_t record;
  ~EndOfNode() { trace.add({.kind = Event::Kind::end, .id = record}); }
};

class Evaluation {
 public:
  explicit Evaluation(GraphTask& task)
      : task_(task), session_(task.session), state_(autograd_state(task.session)) {}

  void run() {
    while (!task_.ready.empty()) {
      for (const uint32_t index : task_.ready.take_round()) {
        GraphTask::NodeState& state = task_.states[index];
        evaluate(*state.node, task_.take_buffer(state));
      }
    }
  }

 private:
  void evaluate(Node& node, Gradients incoming) {
    fetch_ahead(node);
    session_.trace.add({.kind = Event::Kind::node, .id = node.record});
    const EndOfNode end{session_.trace, node.record};
    Scoped<uint32_t> in_node(session_.node, node.record + 1);
    Scoped<uint32_t> in_module(session_.module, session_.trace.nodes[node.record].module);
    Scoped<uint16_t> on_stream(session_.stream, node.stream);
    if (task_.everything || capture(node, incoming)) {
      Gradients outgoing =
          state_.anomaly ? call_watched(node, std::move(incoming)) : call_node(node, std::move(incoming));
      if (!task_.keep_graph) node.release_variables();
      if (state_.anomaly && state_.anomaly_checks_nan) look_for_nan(outgoing);
      for (size_t i = 0; i < outgoing.size(); ++i) route(node, i, std::move(outgoing[i]));
    }
  }

  // Takes the gradients that the caller wants; false if the node itself need not run. Of a node that does,
  // the hooks of its tensors come later, and the caller gets what arrived (engine.cpp, evaluate_function).
  bool capture(Node& node, Gradients& incoming) {
    const GraphTask::NodeState& state = *task_.find(node);
    if (!state.needed) run_hooks_on_tensors(node, incoming);
    if (state.captured) {
      auto [begin, end] = task_.captures.equal_range(node.task_index);
      for (auto it = begin; it != end; ++it)
        task_.captured[it->second.result] = incoming[it->second.input_nr];
    }
    return state.needed;
  }

  // The incoming gradients live until the node has run and its gradients are validated.
  Gradients call_node(Node& node, Gradients incoming) {
    run_hooks_on_tensors(node, incoming);
    run_hooks_before(node, incoming);
    if (!node.hooks || node.hooks->after.empty()) {
      Gradients outgoing = node.apply(incoming);
      fit_gradients(session_, outgoing, node);
      return outgoing;
    }
    Gradients given = incoming;  // what the node may not keep: the hooks see it, too
    Gradients outgoing = node.apply(given);
    given.clear();
    fit_gradients(session_, outgoing, node);
    run_hooks_after(node, outgoing, incoming);
    return outgoing;
  }

  // Anomaly mode: an error says which call of forward it comes from.
  Gradients call_watched(Node& node, Gradients incoming) {
    try {
      return call_node(node, std::move(incoming));
    } catch (const Error& error) {
      fail("{} (anomaly mode: {})", error.what(), origin_of(session_.trace, node.record));
    }
  }

  // Numbers are not known here; what looking for them takes is.
  void look_for_nan(const Gradients& outgoing) {
    Scoped<bool> no_grad(session_.modes.grad, false);
    for (const Tensor& gradient : outgoing)
      if (gradient.defined() && !gradient.is_sparse())
        call<"any">(session_, call<"isnan">(session_, gradient));
  }

  void route(const Node& node, size_t index, Tensor gradient) {
    const Edge& edge = node.next[index];
    if (!edge.valid()) return;
    Node& target = *edge.node;
    GraphTask::NodeState& state = *task_.find(target);
    const bool complete = --state.dependencies == 0;
    if (!task_.everything && !state.wanted()) return;
    task_.buffer_of(state).add(session_, edge.input_nr, std::move(gradient), {node.device, node.stream},
                               {target.device, target.stream});
    if (complete) task_.ready.push(target.device, target.sequence, target.task_index);
  }

  GraphTask& task_;
  Session& session_;
  const AutogradState& state_;
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
    GraphTask::NodeState& state = task.state(*inputs[i].node);
    if (accumulate) {
      state.needed = true;
    } else {
      state.captured = true;
      task.captures.insert({inputs[i].node->task_index, GraphTask::Capture{inputs[i].input_nr, i}});
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

// torch/autograd/__init__.py, _make_grads, and the engine's validation of roots.
Tensor given_gradient(Session& session, const Tensor& root, const Tensor& gradient, size_t i) {
  if (gradient.sizes() != root.sizes())
    fail("backward: gradient {} is {}, but output {} is {}: their sizes must be equal", i, describe(gradient),
         i, describe(root));
  return gradient.dtype() == root.dtype() ? gradient : call<"to.dtype">(session, gradient, root.dtype());
}

Tensor root_gradient(Session& session, const Tensor& root, std::span<const Tensor> gradients, size_t i) {
  if (i < gradients.size() && gradients[i].defined()) return given_gradient(session, root, gradients[i], i);
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
    GraphTask::NodeState& state = task.state(*node);
    const Stream own{node->device, node->stream};
    task.buffer_of(state).add(session, roots[0].input_nr, gradients[0], own, own);
    task.ready.push(node->device, node->sequence, node->task_index);
    return node;
  }
  Ref<Node> node = make<GraphRoot>(session, roots, gradients);
  task.state(*node).needed = true;
  for (const Edge& edge : roots) ++task.find(*edge.node)->dependencies;
  task.ready.push(node->device, node->sequence, node->task_index);
  return node;
}

}  // namespace

Gradients backward(Session& session, std::span<const Tensor> roots, std::span<const Tensor> gradients,
                   std::span<const Tensor> inputs, const BackwardOptions& options) {
  AutogradState& state = autograd_state(session);
  if (gradients.size() > roots.size())
    fail("backward: {} gradients for {} outputs", gradients.size(), roots.size());
  std::vector<Edge> root_edges, input_edges;
  Gradients root_gradients;
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!roots[i].requires_grad()) fail("backward: output {} does not require grad and has no grad_fn", i);
    root_gradients.push_back(root_gradient(session, roots[i], gradients, i));
    root_edges.push_back(gradient_edge(roots[i]));
    // A view that no_grad mode made requires grad, but leads nowhere.
    if (!root_edges.back().valid()) fail("backward: output {} does not require grad and has no grad_fn", i);
  }
  for (const Tensor& input : inputs) {
    if (!input.requires_grad()) fail("backward: an input does not require grad: {}", describe(input));
    if (options.accumulate) retain_grad(input);
    input_edges.push_back(gradient_edge(input));
    if (!input_edges.back().valid()) fail("backward: an input has no grad_fn: {}", describe(input));
  }
  GraphTask task{.session = session,
                 .keep_graph = options.retain_graph || options.create_graph,
                 .serial = ++state.task_count,
                 .nested = state.running_task != nullptr};
  task.captured.resize(options.accumulate ? 0 : inputs.size());
  count_dependencies(task, root_edges);
  if (!inputs.empty()) plan_execution(task, root_edges, input_edges, options.accumulate);

  Scoped<bool> grad_mode(session.modes.grad, options.create_graph);
  Scoped<Category> born_as(session.category, Category::temporary);
  Scoped<bool> thread(session.backward_thread, session.device.is_cuda());
  Scoped<GraphTask*> running(state.running_task, &task);
  Scoped<uint32_t> number(state.running_number, task.serial);
  Scoped<uint32_t> deeper(state.reentrant_depth, state.reentrant_depth + 1);
  Scoped<uint16_t> depth(session.depth, 0);
  const Ref<Node> first = start(task, root_edges, root_gradients);
  Evaluation(task).run();
  for (size_t i = 0; i < task.captured.size(); ++i) {
    if (task.captured[i].defined()) continue;
    if (options.materialize) {
      task.captured[i] = call<"zeros_like">(session, inputs[i]);
    } else if (!options.allow_unused) {
      fail("grad: input {} was not used in the graph; set allow_unused if that is meant", i);
    }
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
