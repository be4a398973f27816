#pragma once
// Graphs that are ready to be launched.

#include "capture/emulator/machine/error.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/streams/graphs.h"
#include "capture/emulator/machine/streams/streams.h"

namespace metaprof::emulator {

struct GraphExecution;

METAPROF_EXPORT Error instantiate(GraphExecution** out, Graph* graph);
METAPROF_EXPORT Error destroy_execution(GraphExecution* execution);
/// Counts the graph's kernels as launches.
METAPROF_EXPORT Error launch(GraphExecution* execution, Stream* stream);

}  // namespace metaprof::emulator
