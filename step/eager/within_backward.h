#pragma once
// What hooks of a captured program call while the engine runs. It stands in the program behind the call of backward, from
// hook_enter to hook_leave for each time that one ran, in the order in which it was seen.

#include "step/eager/interpreter.h"

namespace metaprof {

/// A backward that the interpreter runs. The engine's hooks run the calls of their first body that has not run yet.
class Interpreter::WithinBackward {
 public:
  /// `backward`: the instruction.
  WithinBackward(Interpreter& interpreter, const Code& code, const Instruction& backward, Values& values);
  ~WithinBackward();
  WithinBackward(const WithinBackward&) = delete;

  /// What the hook gives in place of these gradients; empty: nothing.
  std::vector<Tensor> run_hook(int64_t number, std::vector<Tensor> gradients);
  /// Bodies to which the engine did not come: of hooks that it does not have, and what is called when it ends.
  void run_rest();

 private:
  struct Body {
    int64_t hook;
    size_t enter, leave;  // instructions
    bool done = false;
  };
  std::vector<Tensor> run(Body& body, std::vector<Tensor> gradients);
  void give(const GraphNode& enter, std::vector<Tensor> gradients);

  Interpreter& interpreter_;
  const Code& code_;
  Values& values_;
  std::vector<Body> bodies_;
};

}  // namespace metaprof
