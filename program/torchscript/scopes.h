#pragma once
// Branches and loops around the calls of a program: how long values live depends on them.

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace metaprof::script {

class Scopes {
 public:
  /// A branch or a loop that stays in the compiled graph begins. `calls`: how many calls there are so far.
  /// Errors: more than 1,000 inside each other.
  void enter(size_t calls);
  void leave(size_t calls);
  /// Something that is no call uses the value: a question for its size, or a branch that is not taken.
  void use(ValueId value, size_t calls);
  /// All calls have been made.
  void finish(size_t calls) { note(calls); }

  /// How many there were.
  size_t count() const { return parents_.size() - 1; }

  /// A value goes behind the call that uses it last: the interpreter moves it out of its register there. One that is used
  /// last inside a branch or a loop, and made outside of it, goes at the end of that branch or loop
  /// (torch/csrc/jit/runtime/interpreter/preprocess_graph.cpp).
  void drop_values(Program& program) const;

 private:
  struct Use {
    ValueId value;
    size_t behind;  // the call behind which it is
    int32_t scope;
  };
  std::vector<std::vector<Use>> uses_by_call(const Graph& graph) const;
  void note(size_t calls) { of_call_.resize(calls, current_); }
  std::vector<int32_t> path(int32_t scope) const;

  std::vector<int32_t> parents_ = {-1};  // per scope; 0 is the whole graph
  std::vector<int32_t> of_call_;         // per call: its innermost scope
  std::vector<Use> uses_;                // that are no calls, in order
  int32_t current_ = 0;
  int depth_ = 0;
};

}  // namespace metaprof::script
