// Streams, events and capture.

#include "capture/emulator/machine/streams/streams.h"

#include <cstring>

#include "capture/emulator/machine/memory/pools.h"
#include "capture/emulator/machine/streams/capture.h"
#include "capture/emulator/runtime/runtime.h"

using namespace metaprof::emulator;

namespace {

// That something is not complete yet is no error that the thread keeps.
Error answer(Error error) { return error == not_ready ? error : result(error); }

}  // namespace

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
  return answer(ask_stream(stream));
}
METAPROF_RUNTIME cudaStreamSynchronize(Stream* stream) {
  if (const Error error = use_device()) return fail(error);
  if (const Error error = wait_for_stream(stream)) return fail(error);
  pools_wait(current_device());
  return success;
}
METAPROF_RUNTIME cudaStreamAddCallback(Stream* stream, void (*call)(Stream*, int, void*), void* data,
                                       unsigned) {
  if (const Error error = use_device()) return fail(error);
  if (const Error error = submit(stream, NodeKind::host)) return fail(error);
  call(stream, success, data);
  return success;
}
METAPROF_RUNTIME cudaLaunchHostFunc(Stream* stream, void (*call)(void*), void* data) {
  if (const Error error = use_device()) return fail(error);
  if (const Error error = submit(stream, NodeKind::host)) return fail(error);
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
  return answer(ask_event(event));
}
METAPROF_RUNTIME cudaEventSynchronize(Event* event) {
  if (const Error error = use_device()) return fail(error);
  if (const Error error = wait_for_event(event)) return fail(error);
  pools_wait(current_device());
  return success;
}
METAPROF_RUNTIME cudaEventElapsedTime(float* milliseconds, Event* from, Event* to) {
  if (const Error error = use_device()) return fail(error);
  return answer(elapsed_time(milliseconds, from, to));
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

METAPROF_RUNTIME cudaStreamBeginCapture(Stream* stream, int mode) {
  if (const Error error = use_device()) return fail(error);
  return result(begin_capture(stream, mode));
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
  return result(exchange_capture_mode(mode));
}

namespace {

Error give_capture_info(Stream* stream, CaptureStatus* status, uint64_t* id, Graph** graph,
                        Node* const** nodes, size_t* count) {
  if (const Error error = use_device()) return fail(error);
  CaptureInfo info;
  if (const Error error = capture_info(stream, &info)) return fail(error);
  *status = info.status;
  if (id) *id = info.id;
  if (graph) *graph = info.graph;
  if (nodes) *nodes = info.nodes;
  if (count) *count = info.count;
  return success;
}

// cudaStreamUpdateCaptureDependenciesFlags: 0 adds to what is there, 1 takes its place.
Error update_dependencies(Stream* stream, Node* const* nodes, size_t count, unsigned flags) {
  if (const Error error = use_device()) return fail(error);
  return result(flags > 1 ? invalid_value : update_capture_dependencies(stream, nodes, count, flags == 1));
}

}  // namespace

// Edges have no data here: null says that all of them are plain.
#if METAPROF_CUDA_MAJOR == 12
METAPROF_RUNTIME cudaStreamGetCaptureInfo(Stream* stream, CaptureStatus* status, uint64_t* id) {
  return give_capture_info(stream, status, id, nullptr, nullptr, nullptr);
}
METAPROF_RUNTIME cudaStreamGetCaptureInfo_v2(Stream* stream, CaptureStatus* status, uint64_t* id,
                                             Graph** graph, Node* const** nodes, size_t* count) {
  return give_capture_info(stream, status, id, graph, nodes, count);
}
METAPROF_RUNTIME cudaStreamGetCaptureInfo_v3(Stream* stream, CaptureStatus* status, uint64_t* id,
                                             Graph** graph, Node* const** nodes, const void** edges,
                                             size_t* count) {
  if (edges) *edges = nullptr;
  return give_capture_info(stream, status, id, graph, nodes, count);
}
METAPROF_RUNTIME cudaStreamUpdateCaptureDependencies(Stream* stream, Node* const* nodes, size_t count,
                                                     unsigned flags) {
  return update_dependencies(stream, nodes, count, flags);
}
METAPROF_RUNTIME cudaStreamUpdateCaptureDependencies_v2(Stream* stream, Node* const* nodes, const void*,
                                                        size_t count, unsigned flags) {
  return update_dependencies(stream, nodes, count, flags);
}
#else
METAPROF_RUNTIME cudaStreamGetCaptureInfo(Stream* stream, CaptureStatus* status, uint64_t* id, Graph** graph,
                                          Node* const** nodes, const void** edges, size_t* count) {
  if (edges) *edges = nullptr;
  return give_capture_info(stream, status, id, graph, nodes, count);
}
METAPROF_RUNTIME cudaStreamUpdateCaptureDependencies(Stream* stream, Node* const* nodes, const void*,
                                                     size_t count, unsigned flags) {
  return update_dependencies(stream, nodes, count, flags);
}
#endif
