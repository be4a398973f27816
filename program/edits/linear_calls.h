#pragma once
// Linear modules of a program and the calls that are theirs: what adapters stand beside, and what is kept in few bits.

#include <string>
#include <vector>

#include "program/program.h"

namespace metaprof {

/// One call of a linear module: consecutive nodes of the program's graph.
struct LinearCall {
  size_t begin = 0, end = 0;
  ValueId input = kNoValue, result = kNoValue;
};

/// A module of torch.nn.Linear or transformers' Conv1D.
struct LinearModule {
  std::string path;
  size_t weight = 0;              ///< index into Program::inputs
  int64_t in = 0, out = 0;        ///< elements of a row before and after it, if it is called
  std::vector<LinearCall> calls;  ///< in the order of the program; empty: only others use its weight
};

/// In the order of registration. The last one that is called makes what the loss is computed of: the head.
std::vector<LinearModule> linear_modules(const Program& program);

/// The path of the module that is called last; empty: none is.
std::string head_of(const std::vector<LinearModule>& modules);

}  // namespace metaprof
