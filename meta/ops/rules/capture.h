#pragma once
// Captures of CUDA graphs, as operators notice them. While one is made, random numbers come from a seed and an
// offset on the device, which every replay sets (aten/src/ATen/cuda/CUDAGeneratorImpl.cpp).

#include "meta/session/session.h"

namespace metaprof {

/// Seed and offset of graphs. They live as long as the graphs do.
struct GraphGenerator {
  Ref<Storage> seed, offset;
};

/// What a capture finds that begins on the current stream: made now, or nothing yet
/// (Framework::makes_graph_seed_on_first_use).
GraphGenerator make_graph_generator(Session& session);

/// While it lives, a graph is captured. What its operators make for its generator is there in the end.
class StreamCapture {
 public:
  StreamCapture(Session& session, GraphGenerator& generator);
  ~StreamCapture();
  StreamCapture(const StreamCapture&) = delete;

 private:
  Session& session_;
  GraphGenerator& generator_;
  const LayerFunction before_;
};

/// Whether one is captured.
bool is_capturing(const Session& session);

}  // namespace metaprof
