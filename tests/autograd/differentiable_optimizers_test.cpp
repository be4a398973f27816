// Optimizers with differentiable=True: what steps take and keep, against the framework's own on the emulated device
// (tests/data/optimizers, by tools/record_optimizers.py with PyTorch 2.11). Parameters are no leaves there: leaves cannot be
// written to while a history is kept.

#include <fstream>
#include <nlohmann/json.hpp>

#include "meta/optim/optimizer.h"
#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

using nlohmann::json;

class DifferentiableOptimizers : public Graph {
 protected:
  struct Live {
    int64_t now = 0, peak = 0;
  };

  // As the caching allocator counts them: in pieces of 512 bytes.
  Live live_since(size_t begin) const {
    Live live;
    for (size_t i = 0; i < session_->trace.events.size(); ++i) {
      const Event& event = session_->trace.events[i];
      const int64_t change = live_change(*session_, event), rounded = (std::abs(change) + 511) / 512 * 512;
      live.now += change > 0 ? rounded : -rounded;
      if (i + 1 >= begin) live.peak = std::max(live.peak, live.now);
    }
    return live;
  }

  json steps_of(const std::string& optimizer) {
    session_ = make_session(platform_named("h200"));
    std::vector<Tensor> leaves{leaf({700, 300}), leaf({50})}, parameters;
    for (const Tensor& one : leaves) parameters.push_back(clone(one));
    Optimizer steps(*session_, optimizer, OptimizerImpl::standard, parameters);
    json rows = json::array();
    for (int step = 0; step < 3; ++step) {
      for (const Tensor& parameter : parameters) parameter->ensure_extra().grad = tensor_like(parameter);
      const size_t begin = mark();
      const int64_t before = live_since(begin).now;
      steps.step();
      const Live after = live_since(begin);
      rows.push_back({after.now - before, after.peak - before});
    }
    return rows;
  }
};

TEST_F(DifferentiableOptimizers, TakeWhatTheFrameworksTake) {
  std::ifstream file("tests/data/optimizers/steps.json");
  int runs = 0;
  const json recorded = json::parse(file);
  for (const auto& [word, implementations] : recorded["steps"].items()) {
    if (!implementations.contains("differentiable")) continue;
    EXPECT_EQ(steps_of(word + "-differentiable"), implementations["differentiable"]) << word;
    ++runs;
  }
  EXPECT_GE(runs, 50);
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
  expect(message("sgd-differentiable", OptimizerImpl::foreach), "a leaf that requires grad");
}

}  // namespace
}  // namespace metaprof
