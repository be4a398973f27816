#pragma once
// The node of autograd behind what a compiled forward returns: its gradients are the compiled backward.

#include <functional>

#include "meta/autograd/node.h"

namespace metaprof {

class CompiledFunction final : public Node {
 public:
  /// Runs the backward on gradients of the outputs, all of them defined; returns one gradient per edge of the node.
  using Backward = std::function<Gradients(const Gradients& gradients)>;

  CompiledFunction(Session& session, Backward backward)
      : Node(session, "CompiledFunctionBackward", session.call), backward_(std::move(backward)) {}

  Gradients apply(Gradients& incoming) override {
    materialise(incoming);
    return backward_(incoming);
  }
  void release_variables() override { backward_ = nullptr; }

 private:
  Backward backward_;
};

}  // namespace metaprof
