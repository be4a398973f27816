#pragma once
// Capture: what streams are given becomes nodes of a graph.

#include <cstddef>
#include <cstdint>

#include "capture/emulator/machine/error.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/streams/graphs.h"
#include "capture/emulator/machine/streams/streams.h"

namespace metaprof::emulator {

enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };

struct CaptureInfo {
  CaptureStatus status = CaptureStatus::none;
  uint64_t id = 0;
  Graph* graph = nullptr;
  Node* const* nodes = nullptr;  ///< after which the stream's next node comes; until the stream is used again
  size_t count = 0;
};

/// `mode` is a cudaStreamCaptureMode.
METAPROF_EXPORT Error begin_capture(Stream* stream, int mode);
METAPROF_EXPORT Error end_capture(Stream* stream, Graph** out);
METAPROF_EXPORT Error capture_info(Stream* stream, CaptureInfo* out);
/// After which nodes the stream's next one comes: these, too, or these `instead`.
METAPROF_EXPORT Error update_capture_dependencies(Stream* stream, Node* const* nodes, size_t count,
                                                  bool instead);
/// The thread's mode takes the place of *mode, and the other way round.
METAPROF_EXPORT Error exchange_capture_mode(int* mode);
/// What is not safe while a stream captures begins with it: taking and giving back memory, asking for events.
METAPROF_EXPORT Error check_unsafe_call();

}  // namespace metaprof::emulator
