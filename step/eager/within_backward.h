#pragma once
// What hooks of a captured program call while the engine runs. It stands in the program behind the call of backward, from
// hook_enter to hook_leave for each time that one ran, in the order in which it was seen.

#include "meta/autograd/graph/hooks.h"
#include "step/eager/interpreter.h"

namespace metaprof {

/// A backward that the interpreter runs. The engine's hooks run the calls of their first body that has not run yet.
class Interpreter::WithinBackward {
 public:
  /// `backward`: the instruction. Errors: a hook runs before a node that the roots do not lead to.
  WithinBackward(Interpreter& interpreter, const Code& code, const Instruction& backward,
                 const std::vector<Tensor>& roots, Values& values);
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
    Tensor edge = {};     // of the node before which it runs
    bool done = false;
  };
  void wait_for_node(Body& body, const std::vector<Tensor>& roots);
  std::vector<Tensor> run(Body& body, std::vector<Tensor> gradients);
  void give(const Body& body, std::vector<Tensor> gradients);

  Interpreter& interpreter_;
  const Code& code_;
  Values& values_;
  std::vector<Body> bodies_;
  std::vector<HookHandle> before_nodes_;
};

/// A tensor without memory, of which a backward can begin at this edge.
Tensor tensor_at(Session& session, const Edge& edge);

}  // namespace metaprof
