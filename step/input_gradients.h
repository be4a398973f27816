#pragma once
// Steps that ask for gradients of inputs instead of a plain backward: torch.autograd.grad, a gradient penalty, a
// product of the Hessian and a vector.

#include <string>
#include <vector>

#include "meta/op/record.h"
#include "step/options.h"
#include "step/placement.h"

namespace metaprof {

/// What such a step keeps in Python's names until the next step binds them again.
class InputGradients {
 public:
  /// Asks the inputs that the options name for gradients. Session, program and options outlive it. Errors: there is no
  /// such input, or it is not floating; options that do not go together.
  InputGradients(Session& session, const Program& program, const StepOptions& options,
                 const PlacedTensors& placed);

  /// In place of `backward(loss)`. Errors: those of the engine (an input that the loss does not depend on).
  void differentiate(const Tensor& loss);

  /// Whether parameters get gradients, so that an optimizer has something to do.
  static bool reach_parameters(const StepOptions& options) {
    return options.grad.empty() || options.create_graph;
  }

 private:
  void penalise(const Tensor& loss);
  void multiply_by_hessian();

  Session& session_;
  const StepOptions& options_;
  std::vector<Tensor> inputs_;
  Gradients gradients_, vectors_, products_;
  Tensor penalty_;
};

}  // namespace metaprof
