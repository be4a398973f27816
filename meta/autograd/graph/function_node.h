#pragma once
// A node whose backward is a function of whoever makes it: behind what a compiled forward or a captured one returns.

#include <functional>

#include "meta/autograd/graph/node.h"

namespace metaprof {

class FunctionNode final : public Node {
 public:
  /// Takes gradients of the outputs, all of them defined, and may let go of them; returns one gradient per edge of the
  /// node.
  using Backward = std::function<Gradients(Gradients& gradients)>;

  FunctionNode(Session& session, std::string_view name, Backward backward)
      : Node(session, name, session.call), backward_(std::move(backward)) {}

  Gradients apply(Gradients& incoming) override {
    materialise(incoming);
    return backward_(incoming);
  }
  void release_variables() override { backward_ = nullptr; }

 private:
  Backward backward_;
};

}  // namespace metaprof
