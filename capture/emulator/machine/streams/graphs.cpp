#include "capture/emulator/machine/streams/graphs.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "capture/emulator/machine/devices.h"
#include "capture/emulator/machine/owned.h"

namespace metaprof::emulator {

namespace {

struct State {
  Owned<Graph> graphs;
  std::set<Graph*> lent;  // of captures in progress

  Graph* known(Graph* graph) const { return lent.count(graph) ? graph : graphs.known(graph); }
};

State& state() {
  static auto* const kState = new State;
  return *kState;
}

// A node's handle is taken at its word, as a real device does.
Error give(const std::vector<Node*>& found, Node** out, size_t* count) {
  if (!count) return invalid_value;
  if (out)
    for (size_t i = 0; i < *count; ++i) out[i] = i < found.size() ? found[i] : nullptr;
  *count = out ? std::min(*count, found.size()) : found.size();
  return success;
}

template <class Accept>
std::vector<Node*> nodes_of(const Graph& graph, Accept accept) {
  std::vector<Node*> out;
  for (const auto& node : graph.nodes)
    if (accept(*node)) out.push_back(node.get());
  return out;
}

const char* name_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::kernel: return "KERNEL";
    case NodeKind::copy: return "MEMCPY";
    case NodeKind::fill: return "MEMSET";
    case NodeKind::host: return "HOST";
    case NodeKind::graph: return "GRAPH";
    case NodeKind::empty: return "EMPTY";
    case NodeKind::wait_event: return "EVENT_WAIT";
    case NodeKind::record_event: return "EVENT_RECORD";
    case NodeKind::allocation: return "MEM_ALLOC";
    case NodeKind::free: return "MEM_FREE";
  }
  return "";
}

}  // namespace

Node* Graph::add(NodeKind kind, std::vector<Node*> after, double seconds) {
  nodes.push_back(std::make_unique<Node>(Node{this, kind, nodes.size(), std::move(after), seconds}));
  return nodes.back().get();
}

bool Graph::leads_to(const std::vector<Node*>& some, const std::vector<Node*>& ends) const {
  std::vector<bool> seen(nodes.size());
  std::vector<const Node*> open(ends.begin(), ends.end());
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (seen[node->number]) continue;
    seen[node->number] = true;
    open.insert(open.end(), node->after.begin(), node->after.end());
  }
  return std::all_of(some.begin(), some.end(), [&seen](const Node* node) { return seen[node->number]; });
}

Graph* adopt_graph(std::unique_ptr<Graph> graph) { return state().graphs.adopt(std::move(graph)); }
void lend_graph(Graph* graph) { state().lent.insert(graph); }
void take_back_graph(Graph* graph) { state().lent.erase(graph); }

Error make_graph(Graph** out) {
  const std::lock_guard lock(machine_mutex());
  *out = adopt_graph(std::make_unique<Graph>());
  return success;
}

Error destroy_graph(Graph* graph) {
  const std::lock_guard lock(machine_mutex());
  return state().graphs.erase(graph) ? success : invalid_value;
}

Error add_node(Node** out, Graph* graph, NodeKind kind, Node* const* after, size_t count) {
  const std::lock_guard lock(machine_mutex());
  Graph* const g = state().known(graph);
  if (!g || !out || (count > 0 && !after)) return invalid_value;
  for (size_t i = 0; i < count; ++i)
    if (!after[i] || after[i]->graph != g) return invalid_value;
  *out = g->add(kind, {after, after + count});
  return success;
}

Error add_dependencies(Graph* graph, Node* const* from, Node* const* to, size_t count) {
  const std::lock_guard lock(machine_mutex());
  Graph* const g = state().known(graph);
  if (!g || (count > 0 && (!from || !to))) return invalid_value;
  for (size_t i = 0; i < count; ++i) {
    if (!from[i] || !to[i] || from[i]->graph != g || to[i]->graph != g) return invalid_value;
    if (g->leads_to({to[i]}, {from[i]})) return invalid_value;  // a circle
    to[i]->after.push_back(from[i]);
  }
  return success;
}

Error graph_nodes(Graph* graph, Node** out, size_t* count) {
  const std::lock_guard lock(machine_mutex());
  const Graph* const g = state().known(graph);
  return g ? give(nodes_of(*g, [](const Node&) { return true; }), out, count) : invalid_value;
}

Error graph_roots(Graph* graph, Node** out, size_t* count) {
  const std::lock_guard lock(machine_mutex());
  const Graph* const g = state().known(graph);
  return g ? give(nodes_of(*g, [](const Node& node) { return node.after.empty(); }), out, count)
           : invalid_value;
}

Error graph_edges(Graph* graph, Node** from, Node** to, size_t* count) {
  const std::lock_guard lock(machine_mutex());
  const Graph* const g = state().known(graph);
  if (!g || !count || !from != !to) return invalid_value;
  std::vector<Node*> froms, tos;
  for (const auto& node : g->nodes)
    for (Node* const before : node->after) {
      froms.push_back(before);
      tos.push_back(node.get());
    }
  size_t again = *count;
  give(froms, from, &again);
  return give(tos, to, count);
}

Error node_dependencies(Node* node, Node** out, size_t* count) {
  const std::lock_guard lock(machine_mutex());
  return node && state().known(node->graph) ? give(node->after, out, count) : invalid_value;
}

Error node_dependents(Node* node, Node** out, size_t* count) {
  const std::lock_guard lock(machine_mutex());
  const Graph* const g = node ? state().known(node->graph) : nullptr;
  if (!g) return invalid_value;
  return give(nodes_of(*g,
                       [node](const Node& other) {
                         return std::find(other.after.begin(), other.after.end(), node) != other.after.end();
                       }),
              out, count);
}

Error node_kind(Node* node, NodeKind* kind) {
  const std::lock_guard lock(machine_mutex());
  if (!node || !kind || !state().known(node->graph)) return invalid_value;
  *kind = node->kind;
  return success;
}

Error write_graph(Graph* graph, const char* path) {
  const std::lock_guard lock(machine_mutex());
  const Graph* const g = state().known(graph);
  if (!g || !path) return invalid_value;
  std::ofstream file(path);
  file << "digraph dot {\n";
  for (const auto& node : g->nodes)
    file << "  node_" << node->number << " [shape=record, label=\"{" << name_of(node->kind) << " | "
         << node->number << "}\"];\n";
  for (const auto& node : g->nodes)
    for (const Node* const before : node->after)
      file << "  node_" << before->number << " -> node_" << node->number << ";\n";
  file << "}\n";
  file.close();
  return file ? success : operating_system;
}

Error graph_work(Graph* graph, size_t* kernels, double* seconds) {
  const std::lock_guard lock(machine_mutex());
  const Graph* const g = state().graphs.known(graph);
  if (!g) return invalid_value;
  *kernels = nodes_of(*g, [](const Node& node) { return node.kind == NodeKind::kernel; }).size();
  *seconds = 0;
  for (const auto& node : g->nodes) *seconds += node->seconds;
  return success;
}

}  // namespace metaprof::emulator
