#pragma once
// Runs a graph on numbers, forward and backward, in a session of its own.

#include <memory>
#include <string>
#include <vector>

#include "meta/session/session.h"
#include "step/compiled/executor/executor.h"
#include "tests/libtorch/cpu_numbers.h"

namespace metaprof::ir {

using Numbers = std::vector<double>;

/// What a run gives.
struct GraphResult {
  std::vector<Numbers> outputs,
      gradients;                          ///< of tensors; gradients of the inputs that require grad, in order
  std::vector<Numbers> second_gradients;  ///< of the gradients, if they are asked for
  std::string error;
  int64_t flops = 0;  ///< of the backward
};

/// Gives a graph its arguments: tensors as large as their types say (f64[2,3]), filled with numbers that follow from
/// `seed`; integers as they are given, in order.
class GraphRun {
 public:
  explicit GraphRun(uint64_t seed = 1);
  ~GraphRun();

  std::vector<metaprof::Value> arguments(const Graph& graph, const std::vector<int64_t>& integers = {});
  GraphResult run(GraphExecutor& executor, std::vector<metaprof::Value> arguments, bool second = false);

  /// The elements in order; none of a tensor that is not defined.
  Numbers read(const Tensor& tensor);

  std::unique_ptr<Session> session;
  std::unique_ptr<CpuNumbers> numbers;

 private:
  Tensor filled(SizesView sizes, DType dtype, bool requires_grad);
  uint64_t seed_, drawn_ = 0;
};

/// Options for tests: every pass verified.
ExecutorOptions test_options(bool optimise = true, ExecutorCounters* counters = nullptr);

/// The first difference beyond rounding; empty: none.
std::string difference(const GraphResult& a, const GraphResult& b);

}  // namespace metaprof::ir
