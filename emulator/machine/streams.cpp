#include "emulator/machine/streams.h"

#include <memory>
#include <unordered_map>

#include "emulator/machine/counters.h"
#include "emulator/machine/devices.h"

namespace metaprof::emulator {

struct Graph {
  size_t nodes = 0;
};
struct GraphExecution {
  size_t nodes = 0;
};

namespace {

struct Capture {
  uint64_t id = 0;
  bool invalid = false;
  Stream* origin = nullptr;
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
};

}  // namespace

struct Stream {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  std::shared_ptr<Capture> capture;
};
struct Event {
  unsigned flags = 0;
  bool recorded = false;
  std::weak_ptr<Capture> capture;  ///< in which it was recorded
};

namespace {

// Handles are addresses of these objects; one that is not among them is refused.
template <class T>
using Owned = std::unordered_map<T*, std::unique_ptr<T>>;

struct State {
  Owned<Stream> streams;
  Owned<Event> events;
  Owned<Graph> graphs;
  Owned<GraphExecution> executions;
  Stream defaults[kMostDevices];
  uint64_t next_stream = 16, next_capture = 1;
};

State& state() {
  static auto* const kState = new State;
  return *kState;
}

template <class T>
T* adopt(Owned<T>& owned, std::unique_ptr<T> object) {
  T* const handle = object.get();
  owned.emplace(handle, std::move(object));
  return handle;
}

template <class T>
T* known(Owned<T>& owned, T* handle) {
  return owned.count(handle) ? handle : nullptr;
}

bool is_default(const Stream* stream) { return uintptr_t(stream) <= 2; }

// Null for a handle that is none.
Stream* resolve(Stream* stream) {
  State& s = state();
  if (!is_default(stream)) return known(s.streams, stream);
  Stream& standard = s.defaults[current_device()];
  standard.device = current_device();
  return &standard;
}

constexpr unsigned kWithoutTiming = 2;  // cudaEventDisableTiming

}  // namespace

Error make_stream(Stream** out, unsigned flags, int priority) {
  const std::lock_guard lock(machine_mutex());
  auto stream = std::make_unique<Stream>();
  stream->device = current_device();
  stream->flags = flags;
  stream->priority = priority;
  stream->id = state().next_stream++;
  *out = adopt(state().streams, std::move(stream));
  return success;
}

Error destroy_stream(Stream* stream) {
  const std::lock_guard lock(machine_mutex());
  return state().streams.erase(stream) ? success : invalid_handle;
}

Error stream_facts(Stream* stream, unsigned* flags, int* priority, int* device, uint64_t* id) {
  const std::lock_guard lock(machine_mutex());
  const Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  if (flags) *flags = s->flags;
  if (priority) *priority = s->priority;
  if (device) *device = s->device;
  if (id) *id = s->id;
  return success;
}

Error wait_for_stream(Stream* stream) {
  const std::lock_guard lock(machine_mutex());
  const Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  if (!s->capture) return success;
  s->capture->invalid = true;
  return capture_unsupported;
}

Error wait_for_device(int device) {
  const std::lock_guard lock(machine_mutex());
  for (auto& [handle, stream] : state().streams) {
    if (stream->device != device || !stream->capture) continue;
    stream->capture->invalid = true;
    return capture_unsupported;
  }
  return success;
}

Error submit(Stream* stream) {
  const std::lock_guard lock(machine_mutex());
  const Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  if (s->capture) {
    if (s->capture->invalid) return capture_invalidated;
    ++s->capture->graph->nodes;
  }
  return success;
}

Error make_event(Event** out, unsigned flags) {
  const std::lock_guard lock(machine_mutex());
  auto event = std::make_unique<Event>();
  event->flags = flags;
  *out = adopt(state().events, std::move(event));
  return success;
}

Error destroy_event(Event* event) {
  const std::lock_guard lock(machine_mutex());
  return state().events.erase(event) ? success : invalid_handle;
}

Error record_event(Event* event, Stream* stream) {
  const std::lock_guard lock(machine_mutex());
  Event* const e = known(state().events, event);
  const Stream* const s = resolve(stream);
  if (!e || !s) return invalid_handle;
  e->recorded = true;
  e->capture = s->capture;
  return success;
}

Error wait_for_event(Event* event) {
  const std::lock_guard lock(machine_mutex());
  const Event* const e = known(state().events, event);
  if (!e) return invalid_handle;
  const auto capture = e->capture.lock();
  if (!capture) return success;
  capture->invalid = true;
  return capture_unsupported;
}

Error stream_waits_for_event(Stream* stream, Event* event) {
  const std::lock_guard lock(machine_mutex());
  const Event* const e = known(state().events, event);
  Stream* const s = resolve(stream);
  if (!e || !s) return invalid_handle;
  if (const auto capture = e->capture.lock()) s->capture = capture;
  return success;
}

Error elapsed_time(float* milliseconds, Event* from, Event* to) {
  const std::lock_guard lock(machine_mutex());
  for (Event* const event : {from, to}) {
    const Event* const e = known(state().events, event);
    if (!e || !e->recorded || (e->flags & kWithoutTiming)) return invalid_handle;
  }
  *milliseconds = 0.01F;
  return success;
}

Error begin_capture(Stream* stream) {
  const std::lock_guard lock(machine_mutex());
  Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  if (is_default(stream)) return capture_unsupported;
  if (s->capture) return illegal_state;
  s->capture = std::make_shared<Capture>();
  s->capture->id = state().next_capture++;
  s->capture->origin = s;
  return success;
}

Error end_capture(Stream* stream, Graph** out) {
  const std::lock_guard lock(machine_mutex());
  *out = nullptr;
  const Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  const std::shared_ptr<Capture> capture = s->capture;
  if (!capture || capture->origin != s) return illegal_state;
  for (auto& [handle, other] : state().streams)
    if (other->capture == capture) other->capture.reset();
  for (Stream& other : state().defaults)
    if (other.capture == capture) other.capture.reset();
  if (capture->invalid) return capture_invalidated;
  *out = adopt(state().graphs, std::move(capture->graph));
  return success;
}

Error capture_info(Stream* stream, CaptureInfo* out) {
  const std::lock_guard lock(machine_mutex());
  const Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  *out = {};
  if (!s->capture) return success;
  *out = {s->capture->invalid ? CaptureStatus::invalidated : CaptureStatus::active, s->capture->id,
          s->capture->graph.get()};
  return success;
}

Error make_graph(Graph** out) {
  const std::lock_guard lock(machine_mutex());
  *out = adopt(state().graphs, std::make_unique<Graph>());
  return success;
}

Error destroy_graph(Graph* graph) {
  const std::lock_guard lock(machine_mutex());
  return state().graphs.erase(graph) ? success : invalid_value;
}

Error graph_nodes(Graph* graph, size_t* count) {
  const std::lock_guard lock(machine_mutex());
  const Graph* const g = known(state().graphs, graph);
  if (!g) return invalid_value;
  *count = g->nodes;
  return success;
}

Error instantiate(GraphExecution** out, Graph* graph) {
  const std::lock_guard lock(machine_mutex());
  const Graph* const g = known(state().graphs, graph);
  if (!g) return invalid_value;
  *out = adopt(state().executions, std::make_unique<GraphExecution>(GraphExecution{g->nodes}));
  return success;
}

Error destroy_execution(GraphExecution* execution) {
  const std::lock_guard lock(machine_mutex());
  return state().executions.erase(execution) ? success : invalid_value;
}

Error launch(GraphExecution* execution, Stream* stream) {
  const std::lock_guard lock(machine_mutex());
  const GraphExecution* const e = known(state().executions, execution);
  if (!e) return invalid_value;
  if (!resolve(stream)) return invalid_handle;
  count(Counter::kernels, e->nodes);
  return success;
}

}  // namespace metaprof::emulator
