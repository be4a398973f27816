#pragma once
// Streams and events: what a stream was given, and when that is complete; which stream captures (capture.h).

#include <cstddef>
#include <cstdint>

#include "capture/emulator/machine/error.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/streams/clock.h"
#include "capture/emulator/machine/streams/durations.h"
#include "capture/emulator/machine/streams/graphs.h"

namespace metaprof::emulator {

struct Stream;
struct Event;

// A null stream, and 1 and 2 (CUDA's names for the legacy and the thread's default stream), are streams of the
// current device that nobody makes. A handle that is none gives invalid_handle.

METAPROF_EXPORT Error make_stream(Stream** out, unsigned flags, int priority);
METAPROF_EXPORT Error destroy_stream(Stream* stream);
METAPROF_EXPORT Error stream_facts(Stream* stream, unsigned* flags, int* priority, int* device, uint64_t* id);
/// Whether all work of a stream is complete: not_ready if it is not. An error while it captures, which spoils the capture.
METAPROF_EXPORT Error ask_stream(Stream* stream);
/// Waiting for a stream: an error while it captures, as above.
METAPROF_EXPORT Error wait_for_stream(Stream* stream);
/// What a call does that returns when its work on the stream is complete; nothing where the stream captures.
METAPROF_EXPORT Error finish(Stream* stream);
/// Waiting for everything: an error while a stream of the device captures.
METAPROF_EXPORT Error wait_for_device(int device);
/// Work is given to a stream: a node of the graph where it captures. Its cost decides how long it takes.
METAPROF_EXPORT Error submit(Stream* stream, NodeKind kind, const Cost& cost = {});
/// The same for what takes so many seconds.
METAPROF_EXPORT Error submit(Stream* stream, NodeKind kind, double seconds);
/// When what a stream was given so far is complete.
METAPROF_EXPORT Moment moment_of(Stream* stream);
/// Whether it is.
METAPROF_EXPORT bool is_complete(const Moment& moment);

METAPROF_EXPORT Error make_event(Event** out, unsigned flags);
METAPROF_EXPORT Error destroy_event(Event* event);
METAPROF_EXPORT Error record_event(Event* event, Stream* stream);
/// Whether an event came: not_ready if it did not; an error if it was recorded in a capture.
METAPROF_EXPORT Error ask_event(Event* event);
METAPROF_EXPORT Error wait_for_event(Event* event);
/// A stream that waits for an event of a capture joins that capture.
METAPROF_EXPORT Error stream_waits_for_event(Stream* stream, Event* event);
/// Milliseconds from one recorded event to another of the same device: always 0.01, but with Clock::expected.
METAPROF_EXPORT Error elapsed_time(float* milliseconds, Event* from, Event* to);

}  // namespace metaprof::emulator
