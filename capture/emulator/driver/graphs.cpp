// Graphs and their nodes.

#include "capture/emulator/driver/driver.h"
#include "capture/emulator/machine/streams/executions.h"

using namespace metaprof::emulator;

METAPROF_DRIVER cuGraphCreate(Graph** out, unsigned) { return make_graph(out); }
METAPROF_DRIVER cuGraphDestroy(Graph* graph) { return destroy_graph(graph); }
METAPROF_DRIVER cuGraphAddEmptyNode(Node** out, Graph* graph, Node* const* after, size_t count) {
  return add_node(out, graph, NodeKind::empty, after, count);
}
METAPROF_DRIVER cuGraphAddKernelNode_v2(Node** out, Graph* graph, Node* const* after, size_t count,
                                        const void*) {
  return add_node(out, graph, NodeKind::kernel, after, count);
}
METAPROF_DRIVER cuGraphAddMemcpyNode(Node** out, Graph* graph, Node* const* after, size_t count, const void*,
                                     Context*) {
  return add_node(out, graph, NodeKind::copy, after, count);
}
METAPROF_DRIVER cuGraphAddMemsetNode(Node** out, Graph* graph, Node* const* after, size_t count, const void*,
                                     Context*) {
  return add_node(out, graph, NodeKind::fill, after, count);
}
METAPROF_DRIVER cuGraphAddHostNode(Node** out, Graph* graph, Node* const* after, size_t count, const void*) {
  return add_node(out, graph, NodeKind::host, after, count);
}
METAPROF_DRIVER cuGraphGetNodes(Graph* graph, Node** nodes, size_t* count) {
  return graph_nodes(graph, nodes, count);
}
METAPROF_DRIVER cuGraphGetRootNodes(Graph* graph, Node** nodes, size_t* count) {
  return graph_roots(graph, nodes, count);
}
METAPROF_DRIVER cuGraphNodeGetType(Node* node, NodeKind* kind) { return node_kind(node, kind); }
METAPROF_DRIVER cuGraphAddDependencies(Graph* graph, Node* const* from, Node* const* to, size_t count) {
  return add_dependencies(graph, from, to, count);
}
METAPROF_DRIVER cuGraphAddDependencies_v2(Graph* graph, Node* const* from, Node* const* to, const void*,
                                          size_t count) {
  return add_dependencies(graph, from, to, count);
}

// What an edge says of itself: eight bytes, all of which are zero for a plain one.
namespace {

Error plain(uint64_t* edges, size_t count, Error error) {
  if (edges && error == success)
    for (size_t i = 0; i < count; ++i) edges[i] = 0;
  return error;
}

}  // namespace

METAPROF_DRIVER cuGraphGetEdges(Graph* graph, Node** from, Node** to, size_t* count) {
  return graph_edges(graph, from, to, count);
}
METAPROF_DRIVER cuGraphGetEdges_v2(Graph* graph, Node** from, Node** to, uint64_t* edges, size_t* count) {
  return plain(edges, *count, graph_edges(graph, from, to, count));
}
METAPROF_DRIVER cuGraphNodeGetDependencies(Node* node, Node** out, size_t* count) {
  return node_dependencies(node, out, count);
}
METAPROF_DRIVER cuGraphNodeGetDependencies_v2(Node* node, Node** out, uint64_t* edges, size_t* count) {
  return plain(edges, *count, node_dependencies(node, out, count));
}
METAPROF_DRIVER cuGraphNodeGetDependentNodes(Node* node, Node** out, size_t* count) {
  return node_dependents(node, out, count);
}
METAPROF_DRIVER cuGraphNodeGetDependentNodes_v2(Node* node, Node** out, uint64_t* edges, size_t* count) {
  return plain(edges, *count, node_dependents(node, out, count));
}

METAPROF_DRIVER cuGraphInstantiateWithFlags(GraphExecution** out, Graph* graph, uint64_t) {
  return instantiate(out, graph);
}
METAPROF_DRIVER cuGraphExecDestroy(GraphExecution* execution) { return destroy_execution(execution); }
METAPROF_DRIVER cuGraphUpload(GraphExecution*, Stream*) { return use_context(); }
METAPROF_DRIVER cuGraphLaunch(GraphExecution* execution, Stream* stream) {
  if (const Error error = use_context()) return error;
  return launch(execution, stream);
}
METAPROF_DRIVER cuGraphDebugDotPrint(Graph* graph, const char* path, unsigned) {
  return write_graph(graph, path);
}
