#pragma once
// A compiled part of a training step in a process: its forward, and its backward behind a node of autograd, as
// functions of a tree of graphs.

#include "step/compiled/aot/compiled_step.h"
#include "step/cudagraphs/pool_runner.h"
#include "step/training_step.h"

namespace metaprof {

/// The functions of a part. Parts that are calls of the same code share them.
struct PartFunctions {
  FunctionId forward = -1, backward = -1;  ///< backward: -1 where nothing has a gradient
};

class CompiledPart {
 public:
  /// What a step runs on; outlives its parts.
  struct Process {
    TrainingStep& training;
    PoolRunner& runner;
    GraphTree& tree;
    bool captures_forward, captures_backward;  ///< else eagerly
    /// Gradients that a backward returned, until the next backward that runs finds them used: the manager holds their
    /// memory, so that autograd adds to none of them in place (recorded).
    std::vector<Ref<Storage>> lent = {};
  };
  /// `functions`: nothing where no part before has the same code; the part registers its own then, and outlives the
  /// process.
  CompiledPart(Process& process, size_t program_inputs, CompiledStep compiled,
               const PartFunctions* functions);

  /// `handed`: the inputs behind those of the program. Returns the outputs; of a part that only makes views, which who
  /// calls makes himself, none. Inputs are the caller's to let go of.
  std::vector<Value> run(const std::vector<Value>& handed);
  const PartFunctions& functions() const { return functions_; }
  bool makes_only_views() const { return compiled_.only_views; }
  const std::string& not_modelled() const { return compiled_.not_modelled; }

 private:
  MemoryHandles inputs(const std::vector<Value>& handed) const;
  void differentiate(const std::vector<Tensor>& outputs, MemoryHandles kept,
                     const std::vector<Value>& handed);
  Gradients run_backward(MemoryHandles kept, Gradients& gradients);
  void end_loans(const Gradients& used);
  Tensor as_traced(const Tensor& gradient, const MemoryView& output) const;
  MemoryHandles run_function(FunctionId function, bool captured, MemoryHandles inputs);

  Process& process_;
  const size_t program_inputs_;
  const CompiledStep compiled_;
  PartFunctions functions_;
  MemoryHandles fixed_inputs_;  // null: it is handed over
};

}  // namespace metaprof
