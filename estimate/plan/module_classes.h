#pragma once
// Which modules of a program are alike.

#include "estimate/plan/strategies/module_tree.h"
#include "program/program.h"

namespace metaprof {

/// The modules that the program calls, without costs. Two are alike if they have the same type, make the same
/// calls on tensors of the same shapes and dtypes, as exported, and what is in them is alike.
ModuleTree module_classes(const Program& program);

}  // namespace metaprof
