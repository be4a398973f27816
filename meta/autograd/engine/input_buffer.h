#pragma once
// Where gradients for a node's outputs wait until all of them are there.

#include "meta/autograd/graph/node.h"

namespace metaprof {

class InputBuffer {
 public:
  explicit InputBuffer(size_t inputs, bool apart = false) : apart_(apart) {
    gradients_.resize(inputs);
    arrivals_.resize(inputs);
  }

  /// Undefined: skipped. The first gradient is moved in; the next one is added, in place if the buffer is the
  /// only owner of tensor and storage. `producer`, `consumer`: the streams of the nodes; those of host nodes count as the
  /// current stream of the gradient's device. Waits and uses on other streams are written to the trace.
  void add(Session& session, size_t position, Tensor gradient, Stream producer, Stream consumer);
  /// Before the node runs: its stream waits until the gradients are ready.
  void wait(Session& session, Stream consumer) const;
  Gradients take() { return std::move(gradients_); }
  const Tensor& operator[](size_t i) const { return gradients_[i]; }

 private:
  /// Of a position with a gradient of a GPU.
  struct Arrival {
    Stream accumulates;  ///< where gradients are added
    Stream ready;        ///< what is there so far was made on it
  };
  void add_on_first_ones_stream(Session& session, size_t position, Tensor gradient, Stream producer,
                                Stream consumer);
  void add_by_cases(Session& session, size_t position, Tensor gradient, Stream producer, Stream consumer);
  void accumulate(Session& session, size_t position, Tensor gradient);

  Gradients gradients_;
  SmallVector<Arrival, 1> arrivals_;
  bool apart_;  ///< never in place: Node::adds_apart
};

/// The buffer's gradient may be overwritten: plain, dense, and nobody else looks at it or its storage.
bool can_accumulate_in_place(const Tensor& gradient);

}  // namespace metaprof
