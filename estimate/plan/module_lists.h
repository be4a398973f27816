#pragma once
// Which modules follow each other in a list, so that several of them can be computed again as one.

#include "estimate/plan/strategies/module_tree.h"
#include "program/program.h"

namespace metaprof {

/// Sets Module::list: for the modules of the outermost torch.nn.ModuleList and torch.nn.Sequential that the
/// program calls once each. Those of one list are called one right after the other.
void find_module_lists(const Program& program, ModuleTree& tree);

}  // namespace metaprof
