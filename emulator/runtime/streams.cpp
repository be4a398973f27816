// Streams, events, capture and graphs.

#include "emulator/machine/streams.h"

#include <cstring>

#include "emulator/machine/pools.h"
#include "emulator/runtime/runtime.h"

using namespace metaprof::emulator;

METAPROF_RUNTIME cudaStreamCreateWithPriority(Stream** out, unsigned flags, int priority) {
  if (const Error error = use_device()) return fail(error);
  return result(make_stream(out, flags, priority));
}
METAPROF_RUNTIME cudaStreamCreateWithFlags(Stream** out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}
METAPROF_RUNTIME cudaStreamCreate(Stream** out) { return cudaStreamCreateWithPriority(out, 0, 0); }
METAPROF_RUNTIME cudaStreamDestroy(Stream* stream) {
  if (const Error error = use_device()) return fail(error);
  return result(destroy_stream(stream));
}
METAPROF_RUNTIME cudaStreamGetPriority(Stream* stream, int* priority) {
  if (const Error error = use_device()) return fail(error);
  return result(stream_facts(stream, nullptr, priority, nullptr, nullptr));
}
METAPROF_RUNTIME cudaStreamGetFlags(Stream* stream, unsigned* flags) {
  if (const Error error = use_device()) return fail(error);
  return result(stream_facts(stream, flags, nullptr, nullptr, nullptr));
}
METAPROF_RUNTIME cudaStreamGetId(Stream* stream, uint64_t* id) {
  if (const Error error = use_device()) return fail(error);
  return result(stream_facts(stream, nullptr, nullptr, nullptr, id));
}
METAPROF_RUNTIME cudaStreamGetDevice(Stream* stream, int* device) {
  if (const Error error = use_device()) return fail(error);
  return result(stream_facts(stream, nullptr, nullptr, device, nullptr));
}
METAPROF_RUNTIME cudaStreamQuery(Stream* stream) {
  if (const Error error = use_device()) return fail(error);
  return result(wait_for_stream(stream));
}
METAPROF_RUNTIME cudaStreamSynchronize(Stream* stream) {
  if (const Error error = use_device()) return fail(error);
  pools_wait(current_device());
  return result(wait_for_stream(stream));
}
METAPROF_RUNTIME cudaStreamAddCallback(Stream* stream, void (*call)(Stream*, int, void*), void* data,
                                       unsigned) {
  if (const Error error = use_device()) return fail(error);
  if (const Error error = submit(stream)) return fail(error);
  call(stream, success, data);
  return success;
}
METAPROF_RUNTIME cudaLaunchHostFunc(Stream* stream, void (*call)(void*), void* data) {
  if (const Error error = use_device()) return fail(error);
  if (const Error error = submit(stream)) return fail(error);
  CaptureInfo capture;
  capture_info(stream, &capture);
  if (capture.status == CaptureStatus::none) call(data);  // a node of a graph runs when the graph does: never
  return success;
}
// What a stream may keep in L2 and the like: nothing here depends on it.
METAPROF_RUNTIME cudaStreamSetAttribute() { return result(enter()); }
METAPROF_RUNTIME cudaStreamCopyAttributes() { return result(enter()); }
METAPROF_RUNTIME cudaStreamAttachMemAsync() { return result(enter()); }
METAPROF_RUNTIME cudaCtxResetPersistingL2Cache() { return result(enter()); }

METAPROF_RUNTIME cudaEventCreateWithFlags(Event** out, unsigned flags) {
  if (const Error error = use_device()) return fail(error);
  return result(make_event(out, flags));
}
METAPROF_RUNTIME cudaEventCreate(Event** out) { return cudaEventCreateWithFlags(out, 0); }
METAPROF_RUNTIME cudaEventDestroy(Event* event) {
  if (const Error error = use_device()) return fail(error);
  return result(destroy_event(event));
}
METAPROF_RUNTIME cudaEventRecord(Event* event, Stream* stream) {
  if (const Error error = use_device()) return fail(error);
  return result(record_event(event, stream));
}
METAPROF_RUNTIME cudaEventRecordWithFlags(Event* event, Stream* stream, unsigned) {
  return cudaEventRecord(event, stream);
}
METAPROF_RUNTIME cudaEventQuery(Event* event) {
  if (const Error error = use_device()) return fail(error);
  return result(wait_for_event(event));
}
METAPROF_RUNTIME cudaEventSynchronize(Event* event) { return cudaEventQuery(event); }
METAPROF_RUNTIME cudaEventElapsedTime(float* milliseconds, Event* from, Event* to) {
  if (const Error error = use_device()) return fail(error);
  return result(elapsed_time(milliseconds, from, to));
}
#if METAPROF_CUDA_MAJOR == 12
METAPROF_RUNTIME cudaEventElapsedTime_v2(float* milliseconds, Event* from, Event* to) {
  return cudaEventElapsedTime(milliseconds, from, to);
}
#endif
METAPROF_RUNTIME cudaStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  if (const Error error = use_device()) return fail(error);
  return result(stream_waits_for_event(stream, event));
}
// An event of another process has happened already.
METAPROF_RUNTIME cudaIpcGetEventHandle(void* handle, Event*) {
  std::memset(handle, 0, 64);
  return result(use_device());
}
METAPROF_RUNTIME cudaIpcOpenEventHandle(Event** out, ...) { return cudaEventCreate(out); }

METAPROF_RUNTIME cudaStreamBeginCapture(Stream* stream, int) {
  if (const Error error = use_device()) return fail(error);
  return result(begin_capture(stream));
}
METAPROF_RUNTIME cudaStreamEndCapture(Stream* stream, Graph** graph) {
  if (const Error error = use_device()) return fail(error);
  return result(end_capture(stream, graph));
}
METAPROF_RUNTIME cudaStreamIsCapturing(Stream* stream, CaptureStatus* status) {
  if (const Error error = use_device()) return fail(error);
  CaptureInfo info;
  const Error error = capture_info(stream, &info);
  *status = info.status;
  return result(error);
}
METAPROF_RUNTIME cudaThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int current = 0;
  const int before = current;
  current = *mode;
  *mode = before;
  return success;
}

namespace {

// Nodes have no identity here, so a capture has no dependencies to show.
Error give_capture_info(Stream* stream, CaptureStatus* status, uint64_t* id, Graph** graph,
                        const void** nodes, size_t* count) {
  if (const Error error = use_device()) return fail(error);
  CaptureInfo info;
  if (const Error error = capture_info(stream, &info)) return fail(error);
  *status = info.status;
  if (id) *id = info.id;
  if (graph) *graph = info.graph;
  if (nodes) *nodes = nullptr;
  if (count) *count = 0;
  return success;
}

}  // namespace

#if METAPROF_CUDA_MAJOR == 12
METAPROF_RUNTIME cudaStreamGetCaptureInfo(Stream* stream, CaptureStatus* status, uint64_t* id) {
  return give_capture_info(stream, status, id, nullptr, nullptr, nullptr);
}
METAPROF_RUNTIME cudaStreamGetCaptureInfo_v2(Stream* stream, CaptureStatus* status, uint64_t* id,
                                             Graph** graph, const void** nodes, size_t* count) {
  return give_capture_info(stream, status, id, graph, nodes, count);
}
METAPROF_RUNTIME cudaStreamGetCaptureInfo_v3(Stream* stream, CaptureStatus* status, uint64_t* id,
                                             Graph** graph, const void** nodes, const void** edges,
                                             size_t* count) {
  if (edges) *edges = nullptr;
  return give_capture_info(stream, status, id, graph, nodes, count);
}
METAPROF_RUNTIME cudaStreamUpdateCaptureDependencies_v2() { return result(enter()); }
METAPROF_RUNTIME cudaGraphNodeGetDependencies(void*, void*, size_t* count) {
  if (count) *count = 0;
  return success;
}
METAPROF_RUNTIME cudaGraphNodeGetDependencies_v2(void*, void*, void*, size_t* count) {
  if (count) *count = 0;
  return success;
}
#else
METAPROF_RUNTIME cudaStreamGetCaptureInfo(Stream* stream, CaptureStatus* status, uint64_t* id, Graph** graph,
                                          const void** nodes, const void** edges, size_t* count) {
  if (edges) *edges = nullptr;
  return give_capture_info(stream, status, id, graph, nodes, count);
}
METAPROF_RUNTIME cudaGraphNodeGetDependencies(void*, void*, void*, size_t* count) {
  if (count) *count = 0;
  return success;
}
#endif
METAPROF_RUNTIME cudaStreamUpdateCaptureDependencies() { return result(enter()); }

METAPROF_RUNTIME cudaGraphCreate(Graph** out, unsigned) { return result(make_graph(out)); }
METAPROF_RUNTIME cudaGraphDestroy(Graph* graph) { return result(destroy_graph(graph)); }
METAPROF_RUNTIME cudaGraphGetNodes(Graph* graph, void* nodes, size_t* count) {
  size_t all = 0;
  if (const Error error = graph_nodes(graph, &all)) return fail(error);
  if (nodes) std::memset(nodes, 0, std::min(all, *count) * sizeof(void*));
  *count = all;
  return success;
}
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
METAPROF_RUNTIME cudaGraphDebugDotPrint() { return result(enter()); }
