#pragma once
// The node of autograd behind what a compiled forward returns: its gradient is the compiled backward.

#include <functional>

#include "meta/autograd/node.h"

namespace metaprof {

class CompiledFunction final : public Node {
 public:
  /// Runs the backward on the gradient of the output; returns one gradient per edge of the node.
  using Backward = std::function<Gradients(const Tensor& gradient)>;

  CompiledFunction(Session& session, Backward backward)
      : Node(session, "CompiledFunctionBackward", session.call), backward_(std::move(backward)) {}

  Gradients apply(Gradients& incoming) override { return backward_(incoming[0]); }
  void release_variables() override { backward_ = nullptr; }

 private:
  Backward backward_;
};

}  // namespace metaprof
