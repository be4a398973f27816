#pragma once
// Captures of CUDA graphs, as operators notice them. While one is made on a stream, random numbers come from a
// seed and an offset on the device, which every replay sets.

#include "meta/session/session.h"

namespace metaprof {

/// Seed and offset of a generator on the device. It makes them with the first graph that it serves, and they live
/// as long as such a graph does (aten/src/ATen/cuda/CUDAGeneratorImpl.cpp, register_graph).
struct GraphGenerator {
  Ref<Storage> seed, offset;
};
/// Allocates them on the current stream.
GraphGenerator make_graph_generator(Session& session);

/// While it lives, a graph is captured on the stream that was current when it was made.
class StreamCapture {
 public:
  StreamCapture(Session& session, const GraphGenerator& generator);
  ~StreamCapture();
  StreamCapture(const StreamCapture&) = delete;

 private:
  Session& session_;
  const uint16_t stream_;
};

/// Whether one is captured on the current stream.
bool is_capturing(Session& session);

}  // namespace metaprof
