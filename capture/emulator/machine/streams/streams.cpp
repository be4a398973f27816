#include "capture/emulator/machine/streams/streams.h"

#include "capture/emulator/machine/environment.h"
#include "capture/emulator/machine/streams/stream_state.h"

namespace metaprof::emulator {
namespace {

// A program that asks again and again, and does nothing else meanwhile, waits: on a device time goes by.
constexpr int kPatience = 20;
thread_local int asked_in_vain = 0;

bool is_legacy(const Stream& stream) { return stream.id < kMostDevices; }

// The legacy stream's work comes after that of the streams that block, and the other way round.
void join_legacy(Stream& stream) {
  if (!is_legacy(stream)) {
    if (!(stream.flags & kNonBlocking)) join(stream.ready, streams().defaults[stream.device].ready);
    return;
  }
  for (auto& [handle, other] : streams().streams)
    if (other->device == stream.device && !(other->flags & kNonBlocking)) join(stream.ready, other->ready);
}

Error ask(const Moment& moment) {
  spend(kHostSecondsToAsk);
  if (!has_come(moment)) {
    if (++asked_in_vain < kPatience) return not_ready;
    wait_until(moment);
  }
  asked_in_vain = 0;
  return success;
}

// Nobody can wait for a stream that captures.
Error spoil(Capture& capture) {
  capture.invalid = true;
  return capture_unsupported;
}

Error enter_capture(Stream& stream, const std::shared_ptr<Capture>& capture,
                    const std::vector<Node*>& nodes) {
  if (stream.capture && stream.capture != capture) {
    stream.capture->invalid = capture->invalid = true;
    return capture_merge;
  }
  stream.capture = capture;
  for (Node* const node : nodes) {
    bool known = false;
    for (const Node* const other : stream.last) known = known || other == node;
    if (!known) stream.last.push_back(node);
  }
  return success;
}

}  // namespace

Error make_stream(Stream** out, unsigned flags, int priority) {
  const std::lock_guard lock(machine_mutex());
  auto stream = std::make_unique<Stream>();
  stream->device = current_device();
  stream->flags = flags;
  stream->priority = priority;
  stream->id = streams().next_stream++;
  *out = streams().streams.adopt(std::move(stream));
  return success;
}

Error destroy_stream(Stream* stream) {
  const std::lock_guard lock(machine_mutex());
  Stream* const s = streams().streams.known(stream);
  if (!s) return invalid_handle;
  if (s->capture && s->capture->origin == s) {  // nobody can end it
    s->capture->invalid = true;
    s->capture->origin = nullptr;
  }
  streams().streams.erase(s);
  return success;
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

Error ask_stream(Stream* stream) {
  const std::lock_guard lock(machine_mutex());
  Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  if (s->capture) return spoil(*s->capture);
  join_legacy(*s);
  return ask(s->ready);
}

Error wait_for_stream(Stream* stream) {
  const std::lock_guard lock(machine_mutex());
  Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  if (s->capture) return spoil(*s->capture);
  if (const Error error = check_legacy_stream(*s)) return error;
  join_legacy(*s);
  wait_until(s->ready);
  return success;
}

Error finish(Stream* stream) {
  {
    const std::lock_guard lock(machine_mutex());
    const Stream* const s = resolve(stream);
    if (s && s->capture) return success;
  }
  return wait_for_stream(stream);
}

Error wait_for_device(int device) {
  const std::lock_guard lock(machine_mutex());
  for (auto& [handle, stream] : streams().streams)
    if (stream->device == device && stream->capture) return spoil(*stream->capture);
  for (auto& [handle, stream] : streams().streams)
    if (stream->device == device) wait_until(stream->ready);
  wait_until(streams().defaults[device].ready);
  return success;
}

namespace {

bool takes_time(NodeKind kind) {
  return kind == NodeKind::kernel || kind == NodeKind::copy || kind == NodeKind::fill;
}

}  // namespace

Error submit(Stream* stream, NodeKind kind, const Cost& cost) {
  return submit(stream, kind, takes_time(kind) ? seconds_of(cost) : 0);
}

Error submit(Stream* stream, NodeKind kind, double seconds) {
  asked_in_vain = 0;
  const std::lock_guard lock(machine_mutex());
  Stream* const s = resolve(stream);
  if (!s) return invalid_handle;
  if (s->capture) {
    if (s->capture->invalid) return capture_invalidated;
    s->last = {s->capture->graph->add(kind, std::move(s->last), seconds)};
    return success;
  }
  if (const Error error = check_legacy_stream(*s)) return error;
  join_legacy(*s);
  spend(kHostSecondsToSubmit);
  add_work(s->ready, s->id, seconds);
  return success;
}

Moment moment_of(Stream* stream) {
  const std::lock_guard lock(machine_mutex());
  const Stream* const s = resolve(stream);
  return s ? s->ready : Moment();
}

bool is_complete(const Moment& moment) {
  const std::lock_guard lock(machine_mutex());
  return has_come(moment);
}

Error make_event(Event** out, unsigned flags) {
  const std::lock_guard lock(machine_mutex());
  auto event = std::make_unique<Event>();
  event->flags = flags;
  *out = streams().events.adopt(std::move(event));
  return success;
}

Error destroy_event(Event* event) {
  const std::lock_guard lock(machine_mutex());
  return streams().events.erase(event) ? success : invalid_handle;
}

Error record_event(Event* event, Stream* stream) {
  const std::lock_guard lock(machine_mutex());
  Event* const e = streams().events.known(event);
  Stream* const s = resolve(stream);
  if (!e || !s) return invalid_handle;
  spend(kHostSecondsToRecord);
  join_legacy(*s);
  e->recorded = true;
  e->device = s->device;
  e->moment = s->capture ? Moment() : next_of(s->ready);
  e->capture = s->capture;
  e->last = s->capture ? s->last : std::vector<Node*>();
  return success;
}

namespace {

// An event of a capture in progress: nobody outside of it can know when it comes.
template <class Found>
Error with_event(Event* event, Found found) {
  const std::lock_guard lock(machine_mutex());
  if (const Error error = begin_unsafe_call()) return error;
  const Event* const e = streams().events.known(event);
  if (!e) return invalid_handle;
  if (const auto capture = e->capture.lock()) {
    capture->invalid = true;
    return captured_event;
  }
  return found(e->moment);
}

}  // namespace

Error ask_event(Event* event) {
  return with_event(event, [](const Moment& moment) { return ask(moment); });
}

Error wait_for_event(Event* event) {
  return with_event(event, [](const Moment& moment) {
    wait_until(moment);
    return success;
  });
}

Error stream_waits_for_event(Stream* stream, Event* event) {
  const std::lock_guard lock(machine_mutex());
  const Event* const e = streams().events.known(event);
  Stream* const s = resolve(stream);
  if (!e || !s) return invalid_handle;
  spend(kHostSecondsToWait);
  if (!e->recorded) return success;
  if (const auto capture = e->capture.lock()) return enter_capture(*s, capture, e->last);
  if (s->capture) {  // a graph cannot wait for what is not in it
    s->capture->invalid = true;
    return capture_isolation;
  }
  join(s->ready, e->moment);
  return success;
}

Error elapsed_time(float* milliseconds, Event* from, Event* to) {
  const std::lock_guard lock(machine_mutex());
  const Event* found[2] = {streams().events.known(from), streams().events.known(to)};
  for (const Event* const e : found)
    if (!e || !e->recorded || (e->flags & kWithoutTiming)) return invalid_handle;
  if (found[0]->device != found[1]->device) return invalid_handle;
  for (const Event* const e : found)
    if (!has_come(e->moment)) return not_ready;
  constexpr float always = 0.01F;
  const double expected = 1e3 * (found[1]->moment.seconds - found[0]->moment.seconds);
  *milliseconds = environment().clock == Clock::expected ? static_cast<float>(expected) : always;
  return success;
}

}  // namespace metaprof::emulator
