#pragma once
// Programs of random calls: operators, views, writes in place, tensors that are used again and that die,
// regions without gradients, backward. One instruction at a time, so that machines can be compared after
// each.

#include <cstdint>
#include <string>
#include <vector>

#include "meta/op/registry.h"

namespace metaprof {

/// An argument: a plain value, a tensor by the number of its register, or a list of those.
struct Operand {
  Value value = {};
  int tensor = -1;
  std::vector<int> tensors = {};
};

struct Instruction {
  enum class Kind : uint8_t { leaf, call, drop, grad_mode, backward };
  Kind kind;
  Sizes sizes = {};   ///< leaf
  bool flag = false;  ///< leaf: requires grad; grad_mode: on; backward: the graph is kept
  int tensor = -1;    ///< drop, backward: the root, which is summed first
  const Operator* op = nullptr;
  std::vector<Operand> operands = {};
  int first_result = -1, results = 0;  ///< registers that it fills; known when it has run
};

/// "r5, r6 = aten::add.Tensor(r1, r3)"
std::string describe(const Instruction& instruction);

/// What the generator knows of a register: the machine's tensor, undefined if it has died.
using Registers = std::vector<Tensor>;

class ProgramGenerator {
 public:
  /// `smooth`: the results are a differentiable function of the leaves, for differences: no kinks, no regions
  /// without gradients, nothing detached.
  ProgramGenerator(uint64_t seed, bool smooth) : state_(seed), smooth_(smooth) {
    state_ = random(UINT64_MAX);
  }
  Instruction next(const Registers& registers);

 private:
  uint64_t random(uint64_t below);
  bool chance(uint64_t percent) { return random(100) < percent; }
  int pick(const Registers& registers);
  int pick_like(const Registers& registers, int like);
  Instruction leaf();
  Instruction elementwise(const Registers& registers);
  Instruction reduction(const Registers& registers);
  Instruction view(const Registers& registers);
  Instruction join(const Registers& registers);
  Instruction product(const Registers& registers);
  Instruction in_place(const Registers& registers);

  uint64_t state_;
  bool smooth_;
  bool grad_ = true;
};

}  // namespace metaprof
