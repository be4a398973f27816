#pragma once
// A training step, or a part of one, as the framework's compiler cuts it (torch/_functorch/_aot_autograd,
// default_partition of partitioners.py): the operators that a forward and its backward run, found by running them once
// on tensors without data, as two graphs. What the program writes to becomes new memory; what the forward makes and the
// backward uses is an output of the one and an input of the other.

#include <string>

#include "step/compiled/aot/compiled_graph.h"
#include "step/step.h"

namespace metaprof {

struct CompiledStep {
  /// Outputs: of inputs that the program writes to, what they become; the program's; what is kept for backward.
  CompiledGraph forward;
  /// Inputs: what is kept, then gradients of outputs that have one. Outputs: gradients of parameters. No calls: nothing
  /// has a gradient.
  CompiledGraph backward;
  std::vector<size_t> inputs;  ///< of the program, as the forward takes them
  std::vector<size_t>
      attributes;      ///< of `inputs`, by place: constants, which the compiler keeps in the graph
  size_t updates = 0;  ///< outputs of the forward before the program's
  std::vector<bool> differentiable;  ///< per output of the program
  std::vector<Value> constants;      ///< per output of the program: what it is if it is no tensor
  std::vector<size_t>
      parameters;  ///< per output of the backward: index among the parameters that require grad
  /// It does nothing but look into what it was given: its outputs are views of inputs, which the framework makes again
  /// outside (torch/_functorch/_aot_autograd/functional_utils.py, gen_alias_from_base). There is no backward then.
  bool only_views = false;
  std::string not_modelled;  ///< why it is not what the framework would compile; empty: it is
};

/// Errors: as run_steps.
CompiledStep compile_step(const Program& program, const Platform& platform, const StepOptions& options);

}  // namespace metaprof
