#pragma once
// What would help a program that ran out of memory, of what the program itself was not run with: its captured steps are.

#include <string>
#include <vector>

#include "core/units.h"
#include "program/program.h"

namespace metaprof {

struct CapturedAdvice {
  std::string name;           ///< "batch", "optimizer", "precision"
  std::string change;         ///< as a user writes it
  Bytes allocated, reserved;  ///< peaks; where it does not fit, without a limit
  bool fits = false;
};

/// An optimizer with states of 8 bits, a model in bf16, and the largest batch that fits if that is less than `batch`, the captured one (0: it is
/// not looked for). Empty where the steps cannot be run with them. `context`: as --context has it.
std::vector<CapturedAdvice> captured_advice(const Program& program, const std::string& context,
                                            int64_t batch);

}  // namespace metaprof
