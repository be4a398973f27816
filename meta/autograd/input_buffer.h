#pragma once
// Where gradients for a node's outputs wait until all of them are there.

#include "meta/autograd/node.h"

namespace metaprof {

class InputBuffer {
 public:
  explicit InputBuffer(size_t inputs) { gradients_.resize(inputs); }

  /// Undefined: skipped. The first gradient is moved in; the next one is added, in place if the buffer is the
  /// only owner of tensor and storage. `producer`, `consumer`: streams; where they differ the wait is
  /// recorded.
  void add(Session& session, size_t position, Tensor gradient, Stream producer, Stream consumer);
  Gradients take() { return std::move(gradients_); }
  const Tensor& operator[](size_t i) const { return gradients_[i]; }

 private:
  Gradients gradients_;
};

/// The buffer's gradient may be overwritten: plain, dense, and nobody else looks at it or its storage.
bool can_accumulate_in_place(const Tensor& gradient);

}  // namespace metaprof
