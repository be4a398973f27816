// Optimizers with differentiable=True: what steps take and keep, against the framework's own on the emulated device
// (tests/data/optimizers, by tools/record/record_optimizers.py with PyTorch 2.11), and what it refuses. Parameters are no leaves
// there: leaves cannot be written to while a history is kept.

#include <fstream>
#include <nlohmann/json.hpp>

#include "meta/optim/optimizer.h"
#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

using nlohmann::json;

class DifferentiableOptimizers : public Graph {
 protected:
  struct Step {
    int64_t added = 0, peak = 0;
    json requests = json::array();
  };

  // As the caching allocator counts bytes: in pieces of 512.
  Step since(size_t begin) const {
    Step step;
    for (size_t i = begin; i < session_->trace.events.size(); ++i) {
      const int64_t change = live_change(*session_, session_->trace.events[i]);
      if (change == 0) continue;
      const int64_t rounded = (std::abs(change) + 511) / 512 * 512;
      step.added += change > 0 ? rounded : -rounded;
      step.peak = std::max(step.peak, step.added);
      step.requests.push_back(change);
    }
    return step;
  }

  json steps_of(const std::string& optimizer) {
    session_ = make_session(platform_named("h200"));  // PyTorch 2.11
    std::vector<Tensor> leaves{leaf({700, 300}), leaf({50})}, parameters;
    for (const Tensor& one : leaves) parameters.push_back(clone(one));
    Optimizer steps(*session_, optimizer, OptimizerImpl::standard, parameters);
    json rows = json::array(), requests;
    for (int count = 0; count < 3; ++count) {
      for (const Tensor& parameter : parameters) parameter->ensure_extra().grad = tensor_like(parameter);
      const size_t begin = mark();
      steps.step();
      const Step step = since(begin);
      rows.push_back({step.added, step.peak});
      if (count == 1) requests = step.requests;
    }
    return {{"steps", rows}, {"requests", requests}};
  }
};

TEST_F(DifferentiableOptimizers, TakeWhatTheFrameworksTake) {
  std::ifstream file("tests/data/optimizers/steps.json");
  const json recorded = json::parse(file)["differentiable"];
  EXPECT_EQ(recorded.size(), 114u);
  for (const auto& [word, steps] : recorded.items())
    EXPECT_EQ(steps_of(word + "-differentiable"), steps) << word;
}

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
