#pragma once
// Where the sizes of libraries' workspaces in an estimate come from.

#include <vector>

#include "estimate/results/profile.h"
#include "meta/trace/trace.h"
#include "validation/results/check_result.h"

namespace metaprof {

/// The workspaces of a run by operator and size, the largest first. `sources`: what that run asked.
std::vector<WorkspaceRow> workspaces_of(const Trace& trace, const WorkspaceSources& sources);

}  // namespace metaprof
