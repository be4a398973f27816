#pragma once
// Captures of CUDA graphs, as operators notice them. While one is made on a stream, random numbers come from a
// seed and an offset on the device, which every replay sets.

#include "meta/session/session.h"

namespace metaprof {

/// From now on a graph is captured on the current stream: the generator makes its seed and offset
/// (aten/src/ATen/cuda/CUDAGeneratorImpl.cpp, register_graph), which live as long as the session, or until
/// end_capture.
void begin_capture(Session& session);
void end_capture(Session& session);

/// Whether one is captured on the current stream.
bool is_capturing(const Session& session);

}  // namespace metaprof
