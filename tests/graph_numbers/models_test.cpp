// Whole models with numbers: outputs and gradients of a step that is compiled as a graph equal those of an eager step.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "program/pt2/pt2.h"
#include "step/compiled/executor/executor.h"
#include "step/compiled/ir/from_program.h"
#include "step/training_step.h"
#include "tests/libtorch/cpu_numbers.h"

namespace metaprof {
namespace {

const Platform& host_of_test() {
  static const Platform platform = platform_named("cpu");
  return platform;
}

struct StepNumbers {
  at::Tensor loss;
  std::vector<at::Tensor> gradients;  // of the trainable parameters, in order
};

// Parameters as an initialiser would make them, running variances of one, labels and tokens that every vocabulary has.
void fill(CpuNumbers& numbers, const Program& program, const PlacedTensors& placed) {
  CpuNumbers::seed(1);
  for (size_t i = 0; i < placed.inputs.size(); ++i) {
    if (!placed.inputs[i].is_tensor() || !placed.inputs[i].tensor().defined()) continue;
    const Tensor& tensor = placed.inputs[i].tensor();
    at::Tensor data = numbers.of(tensor);
    if (!is_floating(tensor.dtype()))
      data.random_(0, tensor.dtype() == DType::b8 ? 2 : 5);
    else if (program.inputs[i].name.ends_with("running_var"))
      data.fill_(1);
    else
      data.normal_(0, program.inputs[i].kind == ProgramInput::Kind::user ? 1 : 0.05);
  }
}

StepNumbers run_step(const Program& program, const MakeModelRunner& make_runner) {
  StepOptions options;
  options.optimizer = "none";
  TrainingStep training(program, host_of_test(), options, make_runner);
  CpuNumbers numbers(training.session());
  fill(numbers, program, training.placed());
  CpuNumbers::seed(2);  // what dropout draws
  training.forward(0, -1);
  StepNumbers found;
  found.loss = numbers.of(training.loss()).clone();
  training.backward(0, -1);
  for (const Tensor& parameter : training.placed().trainable) {
    const Tensor gradient = parameter.grad();
    found.gradients.push_back(gradient.defined() ? numbers.of(gradient).clone() : at::Tensor());
  }
  return found;
}

// The largest difference against the largest number: what rounding in another order leaves.
double difference(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined() ? 0 : INFINITY;
  const double largest = b.abs().max().item().toDouble();
  return a.sub(b).abs().max().item().toDouble() / (largest > 0 ? largest : 1);
}

class ModelInGraph : public ::testing::TestWithParam<const char*> {};

TEST_P(ModelInGraph, ComputesWhatEagerComputes) {
  const Program program = read_pt2(fmt::format("tests/data/models/{}.pt2", GetParam()));
  std::unique_ptr<ir::GraphExecutor> executor;
  const StepNumbers eager = run_step(program, {});
  const StepNumbers graph = run_step(program, [&](const Program& indexed) -> ModelRunner {
    executor = std::make_unique<ir::GraphExecutor>(
        ir::from_program(indexed, standard_registry()),
        ir::ExecutorOptions{.context = {.registry = standard_registry(), .platform = host_of_test()}});
    return [&](Session& session, const std::vector<Value>& inputs) { return executor->run(session, inputs); };
  });
  EXPECT_EQ(executor->plans().size(), 1u);
  EXPECT_TRUE(std::isfinite(eager.loss.item().toDouble()));
  EXPECT_LT(difference(graph.loss, eager.loss), 1e-6);
  ASSERT_EQ(graph.gradients.size(), eager.gradients.size());
  ASSERT_FALSE(eager.gradients.empty());
  for (size_t i = 0; i < eager.gradients.size(); ++i)
    EXPECT_LT(difference(graph.gradients[i], eager.gradients[i]), 1e-4) << "parameter " << i;
}

// A recurrent network is oneDNN's on the host, which libtorch 1.13 does not have: recurrent cells in a loop are among
// the recorded functions.
INSTANTIATE_TEST_SUITE_P(Models, ModelInGraph, ::testing::Values("mlp", "resnet18.b1", "gpt2.b1.s64"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace metaprof
