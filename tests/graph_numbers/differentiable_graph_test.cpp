// What a differentiable graph is to those around it: what it captures, what it gives them, and what comes back in the
// backward.

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/ops/all.h"
#include "step/compiled/executor/differentiable_code.h"
#include "step/compiled/ir/text.h"
#include "tests/graph_numbers/run_graph.h"

namespace metaprof::ir {
namespace {

class DifferentiableGraphs : public ::testing::Test {
 protected:
  // Runs the graph; all that can lies in differentiable graphs.
  void run(const char* text) {
    const auto graph = parse_graph(text, standard_registry());
    ExecutorOptions options = test_options();
    options.compile.without_inlining = true;
    executor_ = std::make_unique<GraphExecutor>(graph, options);
    arguments_ = run_.arguments(*graph);
    outputs_ = executor_->run(session(), arguments_);
  }
  Session& session() { return *run_.session; }
  Tensor argument(size_t i) const { return arguments_[i].tensor(); }
  Tensor output(size_t i) const { return outputs_[i].tensor(); }
  const DifferentiableGraphNode& node_of(size_t i) const {
    return static_cast<const DifferentiableGraphNode&>(*output(i)->grad_fn);
  }
  void backward_from(size_t i) {
    const Tensor root = output(i), ones = call<"ones_like">(session(), root);
    backward(session(), {&root, 1}, {&ones, 1});
  }
  std::string plan() const { return explain(*executor_); }

  GraphRun run_;
  std::unique_ptr<GraphExecutor> executor_;
  std::vector<metaprof::Value> arguments_, outputs_;
};

// exp, tanh and sigmoid keep their results, two of which the graph does not give.
TEST_F(DifferentiableGraphs, GiveTheirOutputsAndKeepTemporaries) {
  run(R"(graph(%x: Tensor(f64[3] cpu grad)) {
    %a = aten::exp(%x)
    %b = aten::tanh(%a)
    %c = aten::sigmoid(%b)
    -> (%c)
  })");
  ASSERT_EQ(outputs_.size(), 1u);
  EXPECT_EQ(node_of(0).captured_tensors(), 3u) << plan();
  // One node of autograd in all: what the graph calls is not recorded.
  EXPECT_EQ(node_of(0).next.size(), 1u);
  EXPECT_EQ(node_of(0).next[0].node->next.size(), 0u) << "the leaf";
}

// The graph keeps the result of exp, what is indexed, for zeros like it, and the indices, a list of one tensor.
TEST_F(DifferentiableGraphs, CaptureListsTensorByTensor) {
  run(R"(graph(%x: Tensor(f64[3,2] cpu grad), %i: Tensor(i64[4] cpu)) {
    %r = aten::remainder.Scalar(%i, 3)
    %a = aten::neg(%x)
    %l: Tensor[] = prim::ListConstruct(%r)
    %b = aten::index.Tensor(%a, %l)
    %c = aten::exp(%b)
    -> (%c)
  })");
  EXPECT_EQ(node_of(0).captured_tensors(), 3u) << plan();
  backward_from(0);
  EXPECT_EQ(argument(0).grad().sizes(), (Sizes{3, 2}));
}

TEST_F(DifferentiableGraphs, GiveHistoryToFloatingOutputsAlone) {
  run(R"(graph(%x: Tensor(f64[3] cpu grad)) {
    %a = aten::exp(%x)
    %m = aten::gt.Scalar(%a, 1)
    %b = aten::tanh(%a)
    -> (%b, %m)
  })");
  const Node* group = executor_->last_plan()->graph->block().first();
  ASSERT_TRUE(group->is(Kind::differentiable_graph)) << plan();
  EXPECT_EQ(group->outputs.size(), 2u) << plan();
  EXPECT_TRUE(output(0).requires_grad());
  EXPECT_FALSE(output(1).requires_grad());
  EXPECT_FALSE(output(1)->grad_fn);
}

// No gradient comes for c, so that none is computed for w; but w waits for one: zeros, as large as w.
TEST_F(DifferentiableGraphs, MakeZerosOfUndefinedGradients) {
  run(R"(graph(%x: Tensor(f64[3] cpu grad), %w: Tensor(f64[2,3] cpu grad)) {
    %a = aten::tanh(%x)
    %b = aten::mul.Tensor(%a, %w)
    %c = aten::exp(%b)
    -> (%a, %c)
  })");
  ASSERT_EQ(output(0)->grad_fn.get(), output(1)->grad_fn.get()) << plan();
  backward_from(0);
  ASSERT_TRUE(argument(1).grad().defined());
  EXPECT_EQ(argument(1).grad().sizes(), (Sizes{2, 3}));
  EXPECT_EQ(run_.read(argument(1).grad()), Numbers(6, 0.0));
  EXPECT_NE(run_.read(argument(0).grad()), Numbers(3, 0.0));
}

// y lies in the list, of which it is not known what requires grad, and gets nothing.
TEST_F(DifferentiableGraphs, ProduceNothingThatIsNotRequired) {
  run(R"(graph(%x: Tensor(f64[2] cpu grad), %y: Tensor(f64[2] cpu)) {
    %a = aten::cat([%x, %y], 0)
    %b = aten::exp(%a)
    -> (%b)
  })");
  ASSERT_EQ(node_of(0).next.size(), 2u) << plan();
  EXPECT_TRUE(node_of(0).next[0].valid());
  EXPECT_FALSE(node_of(0).next[1].valid());
  backward_from(0);
  EXPECT_EQ(argument(0).grad().sizes(), (Sizes{2}));
  EXPECT_FALSE(argument(1).grad().defined());
}

// The bias is None.
TEST_F(DifferentiableGraphs, TakeNone) {
  run(R"(graph(%x: Tensor(f64[2,3] cpu grad), %w: Tensor(f64[4,3] cpu grad), %b: Tensor?) {
    %a = aten::linear(%x, %w, %b)
    %c = aten::exp(%a)
    -> (%c)
  })");
  backward_from(0);
  EXPECT_EQ(argument(1).grad().sizes(), (Sizes{4, 3}));
}

// A capture goes with its last use, when the backward does not keep the graph: then there is no second one.
TEST_F(DifferentiableGraphs, GiveTheirCapturesAway) {
  run(R"(graph(%x: Tensor(f64[3] cpu grad)) {
    %a = aten::exp(%x)
    %b = aten::tanh(%a)
    -> (%b)
  })");
  backward_from(0);
  EXPECT_THROW(backward_from(0), Error);
}

}  // namespace
}  // namespace metaprof::ir
