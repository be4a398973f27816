#include "capture/emulator/machine/streams/capture.h"

#include <algorithm>

#include "capture/emulator/machine/streams/stream_state.h"

namespace metaprof::emulator {
namespace {

void leave(Stream& stream, const std::shared_ptr<Capture>& capture) {
  if (stream.capture != capture) return;
  stream.capture.reset();
  stream.last.clear();
}

// Every stream that joined must have come back: its last nodes lead to the first stream's.
bool is_joined(const Capture& capture) {
  for (auto& [handle, stream] : streams().streams)
    if (stream->capture.get() == &capture && !capture.graph->leads_to(stream->last, capture.origin->last))
      return false;
  return true;
}

}  // namespace

Error begin_capture(Stream* stream, int mode) {
  const std::lock_guard lock(machine_mutex());
  Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  if (mode < 0 || mode > 2) return invalid_value;
  if (is_default(stream)) return capture_unsupported;
  if (s->capture) return illegal_state;
  s->capture = std::make_shared<Capture>();
  s->capture->id = streams().next_capture++;
  s->capture->mode = CaptureMode(mode);
  s->capture->thread = pthread_self();
  s->capture->origin = s;
  s->last.clear();
  std::vector<std::weak_ptr<Capture>>& all = streams().captures;
  all.erase(std::remove_if(all.begin(), all.end(), [](const auto& capture) { return capture.expired(); }),
            all.end());
  all.push_back(s->capture);
  return success;
}

Error end_capture(Stream* stream, Graph** out) {
  const std::lock_guard lock(machine_mutex());
  *out = nullptr;
  const Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  const std::shared_ptr<Capture> capture = s->capture;
  if (!capture) return illegal_state;
  if (capture->origin != s) return capture_unmatched;
  if (capture->mode != CaptureMode::relaxed && !pthread_equal(capture->thread, pthread_self()))
    return capture_wrong_thread;
  const bool joined = is_joined(*capture);
  for (auto& [handle, other] : streams().streams) leave(*other, capture);
  for (Stream& other : streams().defaults) leave(other, capture);
  take_back_graph(capture->graph.get());
  if (capture->invalid) return capture_invalidated;
  if (!joined) return capture_unjoined;
  *out = adopt_graph(std::move(capture->graph));
  return success;
}

Error capture_info(Stream* stream, CaptureInfo* out) {
  const std::lock_guard lock(machine_mutex());
  const Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  *out = {};
  if (!s->capture) return success;
  *out = {s->capture->invalid ? CaptureStatus::invalidated : CaptureStatus::active, s->capture->id,
          s->capture->graph.get(), s->last.data(), s->last.size()};
  return success;
}

Error update_capture_dependencies(Stream* stream, Node* const* nodes, size_t count, bool instead) {
  const std::lock_guard lock(machine_mutex());
  Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  if (!s->capture) return illegal_state;
  for (size_t i = 0; i < count; ++i)
    if (!nodes || !nodes[i] || nodes[i]->graph != s->capture->graph.get()) return invalid_value;
  std::vector<Node*> after = instead ? std::vector<Node*>() : s->last;
  for (size_t i = 0; i < count; ++i)
    if (std::find(after.begin(), after.end(), nodes[i]) == after.end()) after.push_back(nodes[i]);
  s->last = std::move(after);
  return success;
}

Error exchange_capture_mode(int* mode) {
  if (!mode || *mode < 0 || *mode > 2) return invalid_value;
  const CaptureMode before = thread_capture_mode();
  thread_capture_mode() = CaptureMode(*mode);
  *mode = int(before);
  return success;
}

Error check_unsafe_call() {
  const std::lock_guard lock(machine_mutex());
  return begin_unsafe_call();
}

}  // namespace metaprof::emulator
