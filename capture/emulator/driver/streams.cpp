// Streams, events, capture.

#include "capture/emulator/machine/streams/streams.h"

#include "capture/emulator/driver/driver.h"
#include "capture/emulator/machine/memory/pools.h"
#include "capture/emulator/machine/streams/capture.h"

using namespace metaprof::emulator;

METAPROF_DRIVER cuStreamCreateWithPriority(Stream** out, unsigned flags, int priority) {
  if (const Error error = use_context()) return error;
  return make_stream(out, flags, priority);
}
METAPROF_DRIVER cuStreamCreate(Stream** out, unsigned flags) {
  return cuStreamCreateWithPriority(out, flags, 0);
}
METAPROF_DRIVER cuStreamDestroy_v2(Stream* stream) { return destroy_stream(stream); }
METAPROF_DRIVER cuStreamGetPriority(Stream* stream, int* priority) {
  return stream_facts(stream, nullptr, priority, nullptr, nullptr);
}
METAPROF_DRIVER cuStreamGetFlags(Stream* stream, unsigned* flags) {
  return stream_facts(stream, flags, nullptr, nullptr, nullptr);
}
METAPROF_DRIVER cuStreamGetId(Stream* stream, uint64_t* id) {
  return stream_facts(stream, nullptr, nullptr, nullptr, id);
}
METAPROF_DRIVER cuStreamGetDevice(Stream* stream, int* device) {
  return stream_facts(stream, nullptr, nullptr, device, nullptr);
}
METAPROF_DRIVER cuStreamGetCtx(Stream* stream, Context** context) {
  if (const Error error = use_context()) return error;
  int device = 0;
  if (const Error error = stream_facts(stream, nullptr, nullptr, &device, nullptr)) return error;
  *context = context_of(device);
  return success;
}
METAPROF_DRIVER cuStreamQuery(Stream* stream) { return ask_stream(stream); }
METAPROF_DRIVER cuStreamSynchronize(Stream* stream) {
  if (const Error error = use_context()) return error;
  if (const Error error = wait_for_stream(stream)) return error;
  pools_wait(current_device());
  return success;
}
METAPROF_DRIVER cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  return stream_waits_for_event(stream, event);
}
METAPROF_DRIVER cuStreamIsCapturing(Stream* stream, CaptureStatus* status) {
  CaptureInfo info;
  const Error error = capture_info(stream, &info);
  *status = info.status;
  return error;
}
METAPROF_DRIVER cuStreamBeginCapture_v2(Stream* stream, int mode) { return begin_capture(stream, mode); }
METAPROF_DRIVER cuStreamEndCapture(Stream* stream, Graph** graph) { return end_capture(stream, graph); }
METAPROF_DRIVER cuStreamGetCaptureInfo_v2(Stream* stream, CaptureStatus* status, uint64_t* id, Graph** graph,
                                          Node* const** nodes, size_t* count) {
  CaptureInfo info;
  if (const Error error = capture_info(stream, &info)) return error;
  *status = info.status;
  if (id) *id = info.id;
  if (graph) *graph = info.graph;
  if (nodes) *nodes = info.nodes;
  if (count) *count = info.count;
  return success;
}
METAPROF_DRIVER cuStreamGetCaptureInfo_v3(Stream* stream, CaptureStatus* status, uint64_t* id, Graph** graph,
                                          Node* const** nodes, const void** edges, size_t* count) {
  if (edges) *edges = nullptr;  // all of them are plain
  return cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count);
}
METAPROF_DRIVER cuStreamUpdateCaptureDependencies(Stream* stream, Node* const* nodes, size_t count,
                                                  unsigned flags) {
  return flags > 1 ? invalid_value : update_capture_dependencies(stream, nodes, count, flags == 1);
}
METAPROF_DRIVER cuStreamUpdateCaptureDependencies_v2(Stream* stream, Node* const* nodes, const void*,
                                                     size_t count, unsigned flags) {
  return cuStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}
METAPROF_DRIVER cuThreadExchangeStreamCaptureMode(int* mode) { return exchange_capture_mode(mode); }
// A value that a kernel would wait for: there is none that waits.
METAPROF_DRIVER cuStreamWriteValue32(Stream* stream, uintptr_t, unsigned, unsigned) {
  return submit(stream, NodeKind::kernel);
}
METAPROF_DRIVER cuStreamWriteValue32_v2(Stream* stream, uintptr_t, unsigned, unsigned) {
  return submit(stream, NodeKind::kernel);
}
METAPROF_DRIVER cuStreamWaitValue32(Stream* stream, uintptr_t, unsigned, unsigned) {
  return submit(stream, NodeKind::kernel);
}
METAPROF_DRIVER cuStreamWaitValue32_v2(Stream* stream, uintptr_t, unsigned, unsigned) {
  return submit(stream, NodeKind::kernel);
}

METAPROF_DRIVER cuEventCreate(Event** out, unsigned flags) {
  if (const Error error = use_context()) return error;
  return make_event(out, flags);
}
METAPROF_DRIVER cuEventDestroy_v2(Event* event) { return destroy_event(event); }
METAPROF_DRIVER cuEventRecord(Event* event, Stream* stream) { return record_event(event, stream); }
METAPROF_DRIVER cuEventRecordWithFlags(Event* event, Stream* stream, unsigned) {
  return record_event(event, stream);
}
METAPROF_DRIVER cuEventQuery(Event* event) { return ask_event(event); }
METAPROF_DRIVER cuEventSynchronize(Event* event) { return wait_for_event(event); }
METAPROF_DRIVER cuEventElapsedTime(float* milliseconds, Event* from, Event* to) {
  return elapsed_time(milliseconds, from, to);
}
METAPROF_DRIVER cuEventElapsedTime_v2(float* milliseconds, Event* from, Event* to) {
  return elapsed_time(milliseconds, from, to);
}
