// Optimizers with differentiable=True: what the framework refuses.

#include "meta/optim/optimizer.h"
#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

class DifferentiableOptimizers : public Graph {};

TEST_F(DifferentiableOptimizers, AreRefusedWhereTheFrameworkRefuses) {
  const auto message = [&](const char* word, OptimizerImpl implementation) -> std::string {
    try {
      Tensor parameter = leaf({4});
      parameter->ensure_extra().grad = tensor({4});
      Optimizer(*session_, word, implementation, {parameter}).step();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto expect = [](const std::string& said, const char* part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  expect(message("adam-differentiable", OptimizerImpl::fused), "`fused` does not support `differentiable`");
  expect(message("sgd-differentiable", OptimizerImpl::fused), "`fused` does not support `differentiable`");
  expect(message("rprop-differentiable", OptimizerImpl::foreach), "_foreach ops don't support autograd");
  expect(message("asgd-differentiable", OptimizerImpl::standard), "a leaf that requires grad");
}

}  // namespace
}  // namespace metaprof
