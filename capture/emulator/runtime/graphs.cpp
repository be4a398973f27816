// Graphs and their nodes.

#include "capture/emulator/machine/streams/executions.h"
#include "capture/emulator/runtime/runtime.h"

using namespace metaprof::emulator;

METAPROF_RUNTIME cudaGraphCreate(Graph** out, unsigned) { return result(make_graph(out)); }
METAPROF_RUNTIME cudaGraphDestroy(Graph* graph) { return result(destroy_graph(graph)); }
METAPROF_RUNTIME cudaGraphAddEmptyNode(Node** out, Graph* graph, Node* const* after, size_t count) {
  return result(add_node(out, graph, NodeKind::empty, after, count));
}
METAPROF_RUNTIME cudaGraphAddKernelNode(Node** out, Graph* graph, Node* const* after, size_t count,
                                        const void*) {
  return result(add_node(out, graph, NodeKind::kernel, after, count));
}
METAPROF_RUNTIME cudaGraphAddMemcpyNode(Node** out, Graph* graph, Node* const* after, size_t count,
                                        const void*) {
  return result(add_node(out, graph, NodeKind::copy, after, count));
}
METAPROF_RUNTIME cudaGraphAddMemcpyNode1D(Node** out, Graph* graph, Node* const* after, size_t count, ...) {
  return result(add_node(out, graph, NodeKind::copy, after, count));
}
METAPROF_RUNTIME cudaGraphAddMemsetNode(Node** out, Graph* graph, Node* const* after, size_t count,
                                        const void*) {
  return result(add_node(out, graph, NodeKind::fill, after, count));
}
METAPROF_RUNTIME cudaGraphAddHostNode(Node** out, Graph* graph, Node* const* after, size_t count,
                                      const void*) {
  return result(add_node(out, graph, NodeKind::host, after, count));
}
METAPROF_RUNTIME cudaGraphGetNodes(Graph* graph, Node** nodes, size_t* count) {
  return result(graph_nodes(graph, nodes, count));
}
METAPROF_RUNTIME cudaGraphGetRootNodes(Graph* graph, Node** nodes, size_t* count) {
  return result(graph_roots(graph, nodes, count));
}
METAPROF_RUNTIME cudaGraphNodeGetType(Node* node, NodeKind* kind) { return result(node_kind(node, kind)); }

// What an edge says of itself: eight bytes, all of which are zero for a plain one.
namespace {

Error plain(uint64_t* edges, size_t count, Error error) {
  if (edges && error == success)
    for (size_t i = 0; i < count; ++i) edges[i] = 0;
  return result(error);
}

}  // namespace

#if METAPROF_CUDA_MAJOR == 12
METAPROF_RUNTIME cudaGraphAddDependencies(Graph* graph, Node* const* from, Node* const* to, size_t count) {
  return result(add_dependencies(graph, from, to, count));
}
METAPROF_RUNTIME cudaGraphAddDependencies_v2(Graph* graph, Node* const* from, Node* const* to, const void*,
                                             size_t count) {
  return result(add_dependencies(graph, from, to, count));
}
METAPROF_RUNTIME cudaGraphGetEdges(Graph* graph, Node** from, Node** to, size_t* count) {
  return result(graph_edges(graph, from, to, count));
}
METAPROF_RUNTIME cudaGraphGetEdges_v2(Graph* graph, Node** from, Node** to, uint64_t* edges, size_t* count) {
  return plain(edges, *count, graph_edges(graph, from, to, count));
}
METAPROF_RUNTIME cudaGraphNodeGetDependencies(Node* node, Node** out, size_t* count) {
  return result(node_dependencies(node, out, count));
}
METAPROF_RUNTIME cudaGraphNodeGetDependencies_v2(Node* node, Node** out, uint64_t* edges, size_t* count) {
  return plain(edges, *count, node_dependencies(node, out, count));
}
METAPROF_RUNTIME cudaGraphNodeGetDependentNodes(Node* node, Node** out, size_t* count) {
  return result(node_dependents(node, out, count));
}
METAPROF_RUNTIME cudaGraphNodeGetDependentNodes_v2(Node* node, Node** out, uint64_t* edges, size_t* count) {
  return plain(edges, *count, node_dependents(node, out, count));
}
#else
METAPROF_RUNTIME cudaGraphAddDependencies(Graph* graph, Node* const* from, Node* const* to, const void*,
                                          size_t count) {
  return result(add_dependencies(graph, from, to, count));
}
METAPROF_RUNTIME cudaGraphGetEdges(Graph* graph, Node** from, Node** to, uint64_t* edges, size_t* count) {
  return plain(edges, *count, graph_edges(graph, from, to, count));
}
METAPROF_RUNTIME cudaGraphNodeGetDependencies(Node* node, Node** out, uint64_t* edges, size_t* count) {
  return plain(edges, *count, node_dependencies(node, out, count));
}
METAPROF_RUNTIME cudaGraphNodeGetDependentNodes(Node* node, Node** out, uint64_t* edges, size_t* count) {
  return plain(edges, *count, node_dependents(node, out, count));
}
#endif

METAPROF_RUNTIME cudaGraphInstantiate(GraphExecution** out, Graph* graph, uint64_t) {
  return result(instantiate(out, graph));
}
METAPROF_RUNTIME cudaGraphInstantiateWithFlags(GraphExecution** out, Graph* graph, uint64_t) {
  return result(instantiate(out, graph));
}
METAPROF_RUNTIME cudaGraphExecDestroy(GraphExecution* execution) {
  return result(destroy_execution(execution));
}
METAPROF_RUNTIME cudaGraphUpload(GraphExecution*, Stream*) { return result(use_device()); }
METAPROF_RUNTIME cudaGraphLaunch(GraphExecution* execution, Stream* stream) {
  if (const Error error = use_device()) return fail(error);
  return result(launch(execution, stream));
}
METAPROF_RUNTIME cudaGraphDebugDotPrint(Graph* graph, const char* path, unsigned) {
  return result(write_graph(graph, path));
}
