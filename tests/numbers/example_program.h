#pragma once
// An example of a record with real numbers in its arguments: a function that can be computed again and again.

#include <memory>

#include "tests/libtorch/cpu_numbers.h"
#include "tests/numbers/domains.h"
#include "validation/cases/example.h"

namespace metaprof {

/// Where floating arguments are drawn from, and below what integers stay.
struct Draw {
  double low, high;
  int64_t integers_below;
};

struct ExampleOptions {
  bool double_precision = true;  ///< floating tensors and dtype arguments become f64
  bool gradients = true;
  const char* device = "cpu";
  FrameworkVersion framework = {};
};

class ExampleProgram {
 public:
  ExampleProgram(const Operator& op, std::string_view example, const ExampleOptions& options);

  const Operator& op;
  std::unique_ptr<Session> session;
  std::unique_ptr<CpuNumbers> numbers;
  std::vector<Value> arguments;
  std::vector<Tensor> inputs;  ///< the arguments that require grad

  /// Fills the arguments with the first draw for which libtorch computes finite results: floats of (-2, 2),
  /// (0.1, 0.9), (1.1, 2.9); integers 0, 1, 2 … below their number, below 5, 4, 3, 2, all 0. A NoNumbers if
  /// there is none. Not `finite`: with the first draw that libtorch accepts.
  void fill(bool finite = true);
  /// The arguments of one call: copies of those that it writes, matrices brought into their domain.
  std::vector<Value> fresh_arguments();
  /// Calls the operator. What it writes is a copy of the argument; random operators draw the same each time.
  Results evaluate();
  /// Results that require grad.
  static std::vector<Tensor> differentiable(const Results& results);
  /// Elements in row-major order.
  std::vector<double> values(const Tensor& tensor);
  /// The memory of one element of a tensor of f64.
  double& element(const Tensor& tensor, int64_t index);
  /// A tensor of f64 with numbers from (-1, 1), which requires grad.
  Tensor weights(SizesView sizes, uint32_t seed);

 private:
  void fill_with(const Draw& draw);
  void fill_tensor(const Tensor& tensor, const Draw& draw, uint32_t seed, Domain domain = Domain::any);
  bool is_finite(const Results& results);
};

}  // namespace metaprof
