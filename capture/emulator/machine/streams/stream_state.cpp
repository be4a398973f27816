#include "capture/emulator/machine/streams/stream_state.h"

namespace metaprof::emulator {

Streams& streams() {
  static auto* const kStreams = new Streams;
  return *kStreams;
}

Stream* resolve(Stream* stream) {
  if (!is_default(stream)) return streams().streams.known(stream);
  Stream& standard = streams().defaults[current_device()];
  standard.device = current_device();
  standard.id = uint64_t(standard.device);
  return &standard;
}

CaptureMode& thread_capture_mode() {
  thread_local CaptureMode mode = CaptureMode::global;
  return mode;
}

Error begin_unsafe_call() {
  const CaptureMode thread_mode = thread_capture_mode();
  for (const std::weak_ptr<Capture>& each : streams().captures) {
    const std::shared_ptr<Capture> capture = each.lock();
    if (!capture || capture->mode == CaptureMode::relaxed) continue;
    const bool own = pthread_equal(capture->thread, pthread_self());
    const bool prohibited = own ? thread_mode != CaptureMode::relaxed
                                : thread_mode == CaptureMode::global && capture->mode == CaptureMode::global;
    if (!prohibited) continue;
    capture->invalid = true;
    return capture_unsupported;
  }
  return success;
}

Error check_legacy_stream(const Stream& stream) {
  if (stream.id >= kMostDevices) return success;
  for (const std::weak_ptr<Capture>& each : streams().captures) {
    const std::shared_ptr<Capture> capture = each.lock();
    const Stream* const origin = capture ? capture->origin : nullptr;
    if (!origin || origin->device != stream.device || (origin->flags & kNonBlocking)) continue;
    capture->invalid = true;
    return capture_implicit;
  }
  return success;
}

}  // namespace metaprof::emulator
