#include "capture/emulator/machine/streams/executions.h"

#include "capture/emulator/machine/counters.h"
#include "capture/emulator/machine/devices.h"
#include "capture/emulator/machine/owned.h"

namespace metaprof::emulator {

struct GraphExecution {
  size_t kernels = 0;
  double seconds = 0;
};

namespace {

Owned<GraphExecution>& executions() {
  static auto* const kExecutions = new Owned<GraphExecution>;
  return *kExecutions;
}

}  // namespace

Error instantiate(GraphExecution** out, Graph* graph) {
  GraphExecution execution;
  if (const Error error = graph_work(graph, &execution.kernels, &execution.seconds)) return error;
  const std::lock_guard lock(machine_mutex());
  *out = executions().adopt(std::make_unique<GraphExecution>(execution));
  return success;
}

Error destroy_execution(GraphExecution* execution) {
  const std::lock_guard lock(machine_mutex());
  return executions().erase(execution) ? success : invalid_value;
}

Error launch(GraphExecution* execution, Stream* stream) {
  GraphExecution work;
  {
    const std::lock_guard lock(machine_mutex());
    const GraphExecution* const e = executions().known(execution);
    if (!e) return invalid_value;
    work = *e;
  }
  if (const Error error = submit(stream, NodeKind::graph, work.seconds)) return error;
  count(Counter::kernels, work.kernels);
  return success;
}

}  // namespace metaprof::emulator
