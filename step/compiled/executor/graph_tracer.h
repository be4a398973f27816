#pragma once
// A graph of what is run: operators as they are called, and executors with their graph, as the framework's tracing
// makes it (torch.jit.trace). What an executor computes here it computes by its fallback; what goes into the graph is
// its own graph, specialised to the arguments, so that branches and loops stay what they are.

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "meta/session/session.h"
#include "step/compiled/executor/executor.h"
#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

class GraphTracer {
 public:
  /// `inputs` become the inputs of the graph; session and registry outlive the tracer.
  GraphTracer(Session& session, std::span<const metaprof::Value> inputs);

  /// Calls an operator. Numbers and lists of numbers among the arguments become constants. Error: a tensor that
  /// neither came in nor was made here.
  std::vector<metaprof::Value> call(const Operator& op, std::vector<metaprof::Value> arguments);
  /// Runs an executor. Errors: as GraphExecutor::run, and as `call`.
  std::vector<metaprof::Value> run(GraphExecutor& executor, std::vector<metaprof::Value> inputs);

  /// The graph with these outputs, verified. The tracer has none from then on. Error: as `call`.
  std::shared_ptr<Graph> finish(std::span<const metaprof::Value> outputs);

 private:
  Value* value_of(const metaprof::Value& value);
  Value* tensor_value(const Tensor& tensor);
  void note(const metaprof::Value& made, Value* value);

  Session& session_;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  std::unordered_map<const TensorImpl*, Value*> values_;
  std::vector<Tensor> seen_;  // kept, so that no tensor takes the place of another
};

}  // namespace metaprof::ir
