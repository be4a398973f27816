#pragma once
// What only the statement at work holds while Python runs it: results that wait to be used. An error lets them go, as it
// leaves the statement; what has a name stays, since the error's traceback keeps the frames.

#include <vector>

#include "program/program.h"

namespace metaprof {

/// Nodes of the program's graph, newest first, whose results only the statement holds that makes the call of the node
/// `failed`. None where the source is not known. Results inside a graph inside the program's are not found.
std::vector<size_t> waiting_results(const Program& program, size_t failed);

}  // namespace metaprof
