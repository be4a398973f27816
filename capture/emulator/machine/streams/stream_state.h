#pragma once
// What streams.cpp and capture.cpp share. Whoever uses it holds machine_mutex().

#include <pthread.h>

#include <memory>
#include <vector>

#include "capture/emulator/machine/devices.h"
#include "capture/emulator/machine/owned.h"
#include "capture/emulator/machine/streams/clock.h"
#include "capture/emulator/machine/streams/graphs.h"

namespace metaprof::emulator {

/// What other threads may do while a stream captures. The numbers are CUDA's cudaStreamCaptureMode.
enum class CaptureMode : int { global = 0, thread_local_ = 1, relaxed = 2 };

struct Stream;

struct Capture {
  Capture() { lend_graph(graph.get()); }
  ~Capture() { take_back_graph(graph.get()); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  uint64_t id = 0;
  bool invalid = false;
  CaptureMode mode = CaptureMode::global;
  pthread_t thread = {};     ///< that began it
  Stream* origin = nullptr;  ///< null: it was destroyed
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
};

struct Stream {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  Moment ready;  ///< when all that it was given is complete
  std::shared_ptr<Capture> capture;
  std::vector<Node*> last;  ///< after which its next node of the capture comes
};

struct Event {
  unsigned flags = 0;
  bool recorded = false;
  int device = 0;
  Moment moment;                   ///< when what came before it is complete
  std::weak_ptr<Capture> capture;  ///< in which it was recorded
  std::vector<Node*> last;         ///< after which nodes of it
};

constexpr unsigned kNonBlocking = 1;    // cudaStreamNonBlocking
constexpr unsigned kWithoutTiming = 2;  // cudaEventDisableTiming

struct Streams {
  Owned<Stream> streams;
  Owned<Event> events;
  Stream defaults[kMostDevices];
  uint64_t next_stream = kMostDevices, next_capture = 1;  // the default streams have the first numbers
  std::vector<std::weak_ptr<Capture>> captures;           // in progress
};
Streams& streams();

/// Null, 1 and 2: a default stream of the current device.
inline bool is_default(const Stream* stream) { return uintptr_t(stream) <= 2; }
/// Null for a handle that is none.
Stream* resolve(Stream* stream);

/// What this thread wants to be allowed to do.
CaptureMode& thread_capture_mode();

/// What is not safe while a stream captures spoils a capture whose mode does not let this thread do it.
Error begin_unsafe_call();
/// The legacy stream may not be used while a stream captures that would wait for it: such a capture is spoilt.
Error check_legacy_stream(const Stream& stream);

}  // namespace metaprof::emulator
