#pragma once
// Graphs of work: nodes, and what each comes after. A node does nothing; what is kept is what a program may ask about.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "capture/emulator/machine/error.h"
#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

struct Graph;

/// The numbers are CUDA's CUgraphNodeType.
enum class NodeKind : int {
  kernel = 0,
  copy = 1,
  fill = 2,
  host = 3,
  graph = 4,
  empty = 5,
  wait_event = 6,
  record_event = 7,
  allocation = 10,
  free = 11
};

/// A node is known by its address, from its beginning to the end of its graph.
struct Node {
  Graph* graph = nullptr;
  NodeKind kind = NodeKind::empty;
  size_t number = 0;         ///< in its graph
  std::vector<Node*> after;  ///< those that come before it
  double seconds = 0;        ///< that it takes the device
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;

  Node* add(NodeKind kind, std::vector<Node*> after, double seconds = 0);
  /// Whether everything in `nodes` comes before something in `ends`, or is in it.
  bool leads_to(const std::vector<Node*>& some, const std::vector<Node*>& ends) const;
};

/// A capture gives the graph that it made.
Graph* adopt_graph(std::unique_ptr<Graph> graph);
/// A graph is known while it is captured, too: programs add nodes to it.
void lend_graph(Graph* graph);
void take_back_graph(Graph* graph);

METAPROF_EXPORT Error make_graph(Graph** out);
METAPROF_EXPORT Error destroy_graph(Graph* graph);
METAPROF_EXPORT Error add_node(Node** out, Graph* graph, NodeKind kind, Node* const* after, size_t count);
METAPROF_EXPORT Error add_dependencies(Graph* graph, Node* const* from, Node* const* to, size_t count);

// As CUDA's functions answer: up to *count into `out`, null beyond what there is; without `out` only how many there are.
METAPROF_EXPORT Error graph_nodes(Graph* graph, Node** out, size_t* count);
METAPROF_EXPORT Error graph_roots(Graph* graph, Node** out, size_t* count);
METAPROF_EXPORT Error graph_edges(Graph* graph, Node** from, Node** to, size_t* count);
METAPROF_EXPORT Error node_dependencies(Node* node, Node** out, size_t* count);
METAPROF_EXPORT Error node_dependents(Node* node, Node** out, size_t* count);
METAPROF_EXPORT Error node_kind(Node* node, NodeKind* kind);

/// Writes the graph as a text for Graphviz.
METAPROF_EXPORT Error write_graph(Graph* graph, const char* path);

/// How many of its nodes are kernels, and how long all nodes take, one after the other.
Error graph_work(Graph* graph, size_t* kernels, double* seconds);

}  // namespace metaprof::emulator
