#pragma once
// What a module that is computed again calls, and what of it a selective checkpoint could keep.

#include <string>
#include <vector>

#include "estimate/plan/strategies/module_tree.h"
#include "meta/op/registry.h"
#include "opcount/counts.h"

namespace metaprof {

/// Of the first time that this module is computed again in the trace: the calls about which a selective
/// checkpoint asks, if they cost anything and their results are theirs alone: no views, not written in place.
std::vector<OperatorCall> recomputed_calls(const Trace& trace, const std::string& module,
                                           const Registry& registry, const Rates& rates);

}  // namespace metaprof
