#pragma once
// What a running backward knows: of every node that it has met, and the gradients that wait there.

#include <unordered_map>

#include "meta/autograd/engine/input_buffer.h"
#include "meta/autograd/engine/ready_queues.h"

namespace metaprof {

/// A running backward.
struct GraphTask {
  /// A gradient that the caller wants back, by the input of the node that receives it.
  struct Capture {
    uint32_t input_nr;
    size_t result;
  };

  static constexpr uint32_t kNoBuffer = UINT32_MAX;

  /// What a running backward knows of a node. There is one for every node of the graph: it is kept small.
  struct NodeState {
    Ref<Node> node;                      ///< held until the task is over
    uint32_t task_before, index_before;  ///< of an outer backward that the node belongs to, too
    int32_t dependencies = 0;
    uint32_t buffer = kNoBuffer;  ///< of the gradients that it has received
    bool needed = false;          ///< run it; only asked where the caller named inputs
    bool captured = false;        ///< the caller wants its gradients

    bool wanted() const { return needed || captured; }
  };

  Session& session;
  bool keep_graph;
  uint32_t serial;
  bool everything = true;  ///< no inputs were named: every node runs
  bool nested = false;     ///< another backward is running
  std::vector<NodeState> states = {};
  std::vector<InputBuffer> buffers = {};  ///< of nodes that have gradients and have not run
  std::vector<uint32_t> free_buffers = {};
  std::unordered_multimap<uint32_t, Capture> captures = {};  ///< by state
  ReadyQueues ready = {};
  Gradients captured = {};

  NodeState* find(const Node& node) { return node.task == serial ? &states[node.task_index] : nullptr; }
  NodeState& state(Node& node) {
    if (NodeState* known = find(node)) return *known;
    states.push_back({.node = Ref<Node>(&node), .task_before = node.task, .index_before = node.task_index});
    node.task = serial;
    node.task_index = static_cast<uint32_t>(states.size() - 1);
    return states.back();
  }
  InputBuffer& buffer_of(NodeState& state) {
    if (state.buffer == kNoBuffer) {
      if (free_buffers.empty()) {
        free_buffers.push_back(static_cast<uint32_t>(buffers.size()));
        buffers.emplace_back(0);
      }
      state.buffer = free_buffers.back();
      free_buffers.pop_back();
      buffers[state.buffer] = InputBuffer(state.node->inputs(), state.node->adds_apart);
    }
    return buffers[state.buffer];
  }
  Gradients take_buffer(NodeState& state) {
    InputBuffer& buffer = buffer_of(state);
    buffer.wait(session, {state.node->device, state.node->stream});
    Gradients gradients = buffer.take();
    free_buffers.push_back(std::exchange(state.buffer, kNoBuffer));
    return gradients;
  }
  ~GraphTask() {
    if (!nested) return;
    for (const NodeState& state : states) {
      state.node->task = state.task_before;
      state.node->task_index = state.index_before;
    }
  }
};

/// The running backward needs what this node computes (true if none runs).
inline bool task_wants(const GraphTask* task, const Node& node) {
  if (!task || task->everything) return true;
  const GraphTask::NodeState* state = const_cast<GraphTask*>(task)->find(node);
  return state && state->wanted();
}

}  // namespace metaprof
