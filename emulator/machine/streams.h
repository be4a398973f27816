#pragma once
// Streams, events, capture and graphs. Work is complete the moment it is given to a stream; what is kept is what a
// program may ask about: which stream captures, how many nodes a graph has, which event was recorded.

#include <cstddef>
#include <cstdint>

#include "emulator/machine/error.h"
#include "emulator/machine/export.h"

namespace metaprof::emulator {

struct Stream;
struct Event;
struct Graph;
struct GraphExecution;

enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };

struct CaptureInfo {
  CaptureStatus status = CaptureStatus::none;
  uint64_t id = 0;
  Graph* graph = nullptr;
};

// A null stream, and 1 and 2 (CUDA's names for the legacy and the thread's default stream), are streams of the
// current device that nobody makes. A handle that is none gives invalid_handle.

METAPROF_EXPORT Error make_stream(Stream** out, unsigned flags, int priority);
METAPROF_EXPORT Error destroy_stream(Stream* stream);
METAPROF_EXPORT Error stream_facts(Stream* stream, unsigned* flags, int* priority, int* device, uint64_t* id);
/// Waiting for a stream, or asking whether it is done: an error while it captures, which spoils the capture.
METAPROF_EXPORT Error wait_for_stream(Stream* stream);
/// Waiting for everything: an error while a stream of the device captures.
METAPROF_EXPORT Error wait_for_device(int device);
/// Work is given to a stream: a node of the graph where it captures.
METAPROF_EXPORT Error submit(Stream* stream);

METAPROF_EXPORT Error make_event(Event** out, unsigned flags);
METAPROF_EXPORT Error destroy_event(Event* event);
METAPROF_EXPORT Error record_event(Event* event, Stream* stream);
/// Waiting for an event, or asking whether it came: an error if it was recorded in a capture.
METAPROF_EXPORT Error wait_for_event(Event* event);
/// A stream that waits for an event of a capture joins that capture.
METAPROF_EXPORT Error stream_waits_for_event(Stream* stream, Event* event);
/// Milliseconds from one recorded event to another: always the same, 0.01.
METAPROF_EXPORT Error elapsed_time(float* milliseconds, Event* from, Event* to);

METAPROF_EXPORT Error begin_capture(Stream* stream);
METAPROF_EXPORT Error end_capture(Stream* stream, Graph** out);
METAPROF_EXPORT Error capture_info(Stream* stream, CaptureInfo* out);

METAPROF_EXPORT Error make_graph(Graph** out);
METAPROF_EXPORT Error destroy_graph(Graph* graph);
METAPROF_EXPORT Error graph_nodes(Graph* graph, size_t* count);
METAPROF_EXPORT Error instantiate(GraphExecution** out, Graph* graph);
METAPROF_EXPORT Error destroy_execution(GraphExecution* execution);
/// Counts the graph's nodes as launches of kernels.
METAPROF_EXPORT Error launch(GraphExecution* execution, Stream* stream);

}  // namespace metaprof::emulator
