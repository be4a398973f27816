#include "meta/autograd/graph/node.h"

#include "meta/autograd/graph/state.h"

namespace metaprof {

namespace {

uint64_t next_sequence(Session& session) {
  return session.backward_thread ? autograd_state(session).device_thread_sequence++ : session.sequence++;
}

}  // namespace

Node::Node(Session& session, uint32_t name, uint32_t maker, std::optional<uint64_t> given)
    : sequence(given ? *given : next_sequence(session)),
      record(static_cast<uint32_t>(session.trace.nodes.size())),
      maker(maker),
      stream(session.stream),
      device(session.device),
      session(session) {
  NodeRecord& written = session.trace.nodes.emplace_back();
  written.name = name;
  written.module = session.module;
  written.call = maker;
  written.sequence = sequence;
}

uint32_t Node::add_output(const Tensor& tensor) {
  if (outputs.empty() || device.is_cpu()) device = tensor.device();
  outputs.push_back(Geometry(tensor));
  return static_cast<uint32_t>(outputs.size() - 1);
}

void Node::materialise(Gradients& incoming) {
  for (size_t i = 0; i < outputs.size(); ++i) materialise(incoming, i);
}

void Node::materialise(Gradients& incoming, size_t i) {
  if (incoming[i].defined() || !outputs[i].defined()) return;
  const TensorImpl& of = *outputs[i];
  incoming[i] = call<"zeros">(session, of.sizes, of.dtype, Value(), of.device);
}

void Node::record_edges() {
  Trace& trace = session.trace;
  NodeRecord& written = trace.nodes[record];
  written.first_edge = static_cast<uint32_t>(trace.edges.size());
  written.edge_count = static_cast<uint16_t>(next.size());
  for (const Edge& edge : next) trace.edges.push_back(edge.valid() ? edge.node->record + 1 : 0);
}

void Node::destroy() {
  // The edges of a node hold the next nodes: a queue instead of recursion.
  AutogradState& state = autograd_state(session);
  state.graveyard.push_back(this);
  if (state.destroying) return;
  state.destroying = true;
  while (!state.graveyard.empty()) {
    Node* node = state.graveyard.back();
    state.graveyard.pop_back();
    delete node;
  }
  state.destroying = false;
}

void set_gradient_edge(const Tensor& tensor, Edge edge) {
  tensor->output_nr = edge.input_nr;
  tensor->grad_fn = Ref<Counted>(std::move(edge.node));
  // What was written to a view before is part of its function (set_gradient_edge of torch/csrc/autograd/variable.cpp).
  if (tensor->base) tensor->history_version = tensor->version();
}

AutogradState& autograd_state(Session& session) { return static_cast<AutogradState&>(*session.autograd); }

}  // namespace metaprof
