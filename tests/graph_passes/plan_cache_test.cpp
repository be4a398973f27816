// Plans: one for every kind of arguments, compiled once, whoever asks first; what a plan is for, and what it is not.

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "step/compiled/executor/executor.h"
#include "step/compiled/ir/text.h"

namespace metaprof::ir {
namespace {

const Platform& h200() {
  static const Platform platform = platform_named("h200");
  return platform;
}

class PlanCache : public ::testing::Test {
 protected:
  ExecutorOptions options(bool optimise = true) {
    return {.context = {.registry = standard_registry(), .platform = h200()},
            .optimise = optimise,
            .counters = &counters_};
  }
  std::shared_ptr<Graph> graph(const char* text) { return parse_graph(text, standard_registry()); }
  Tensor tensor(std::initializer_list<int64_t> sizes, bool requires_grad = false, DType dtype = DType::f32) {
    Tensor made = session_->empty(Sizes(sizes), dtype, kFirstGpu);
    made->requires_grad = requires_grad;
    return made;
  }
  std::unique_ptr<Session> session_ = make_session(h200());
  ExecutorCounters counters_;
};

constexpr const char* kChain = R"(graph(%x: Tensor, %y: Tensor?) {
  %n = aten::__isnot__(%y, None)
  %z: Tensor = prim::If(%n) {
    %a = aten::mul.Tensor(%x, %y)
    -> (%a)
  } {
    -> (%x)
  }
  %t = aten::tanh(%z)
  %u = aten::mul.Tensor(%t, %x)
  -> (%u)
})";

TEST_F(PlanCache, SizesHitEverythingElseMisses) {
  GraphExecutor executor(graph(kChain), options());
  const auto plans_after = [&](Tensor x, Tensor y) {
    executor.run(*session_, {metaprof::Value(std::move(x)), metaprof::Value(std::move(y))});
    return executor.plans().size();
  };
  EXPECT_EQ(plans_after(tensor({2, 3}), tensor({2, 3})), 1u);
  EXPECT_EQ(plans_after(tensor({5, 7}), tensor({5, 7})), 1u) << "sizes";
  EXPECT_EQ(plans_after(tensor({5, 7}), tensor({7})), 2u) << "dimensions";
  EXPECT_EQ(plans_after(tensor({2, 3}, false, DType::f64), tensor({2, 3})), 3u) << "dtype";
  EXPECT_EQ(plans_after(tensor({2, 3}, true), tensor({2, 3})), 4u) << "requires grad";
  EXPECT_EQ(plans_after(tensor({2, 3}), Tensor()), 5u) << "not defined";
  session_->modes.grad = false;
  EXPECT_EQ(plans_after(tensor({2, 3}, true), tensor({2, 3})), 5u)
      << "without gradient mode nothing requires grad: the first plan";
  EXPECT_EQ(counters_.invocations, 7);
  EXPECT_EQ(counters_.misses, 5);
  EXPECT_EQ(counters_.hits, 2);
}

// x requires grad in both calls; the modes make two plans.
TEST_F(PlanCache, GradientModeMissesWhereSomethingRequiresGrad) {
  GraphExecutor executor(graph(kChain), options());
  executor.run(*session_, {metaprof::Value(tensor({2}, true)), metaprof::Value()});
  session_->modes.grad = false;
  executor.run(*session_, {metaprof::Value(tensor({2}, true)), metaprof::Value()});
  EXPECT_EQ(executor.plans().size(), 2u);
  EXPECT_NE(to_text(*executor.plans()[0].second->graph).find("prim::DifferentiableGraph"), std::string::npos);
  EXPECT_EQ(to_text(*executor.plans()[1].second->graph).find("prim::DifferentiableGraph"), std::string::npos);
}

TEST_F(PlanCache, TheFallbackIsOnePlanForAll) {
  GraphExecutor executor(graph(kChain), options(false));
  executor.run(*session_, {metaprof::Value(tensor({2, 3})), metaprof::Value(tensor({2, 3}))});
  executor.run(*session_, {metaprof::Value(tensor({2}, true)), metaprof::Value()});
  EXPECT_EQ(executor.plans().size(), 0u);
  EXPECT_EQ(executor.last_plan(), executor.fallback());
  EXPECT_EQ(counters_.misses, 0);
}

TEST_F(PlanCache, TooFewInputsAreRefused) {
  GraphExecutor executor(graph(kChain), options());
  try {
    executor.run(*session_, {metaprof::Value(tensor({2}))});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the graph takes 2 inputs, but got only 1");
  }
}

// Three kinds of arguments, eight threads, fifty calls each: three plans, compiled once, and one for the gradient of
// the kind that has one. The threads' sessions are their own.
TEST_F(PlanCache, ThreadsCompileEachKindOnce) {
  GraphExecutor executor(graph(kChain), options());
  constexpr int kThreads = 8, kCalls = 50;
  std::atomic<int> backwards{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto session = make_session(h200());
      for (int call = 0; call < kCalls; ++call) {
        Tensor x = session->empty(Sizes{2, 3}, DType::f32, kFirstGpu);
        x->requires_grad = (call + t) % 3 == 1;
        Tensor y = (call + t) % 3 == 2 ? Tensor() : session->empty(Sizes{2, 3}, DType::f32, kFirstGpu);
        const auto outputs = executor.run(*session, {metaprof::Value(x), metaprof::Value(y)});
        if (!x.requires_grad()) continue;
        const Tensor root = outputs[0].tensor(), gradient = metaprof::call<"ones_like">(*session, root);
        grad(*session, {&root, 1}, {&x, 1}, {&gradient, 1});
        ++backwards;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(executor.plans().size(), 3u);
  EXPECT_EQ(counters_.executors, 2);
  EXPECT_EQ(counters_.misses, 4);
  EXPECT_EQ(counters_.hits, kThreads * kCalls - 3 + backwards - 1);
  EXPECT_EQ(counters_.invocations, kThreads * kCalls + backwards);
}

TEST_F(PlanCache, ExplainShowsGraphPlansAndGradients) {
  GraphExecutor executor(graph(kChain), options());
  executor.run(*session_, {metaprof::Value(tensor({2}, true)), metaprof::Value(tensor({2}))});
  const std::string text = explain(executor);
  EXPECT_NE(
      text.find("executor, plan 1 (with gradients; Tensor(f32[*] cuda grad); Tensor(f32[*] cuda no_grad))"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("executor, plan 1, gradient 1: graph"), std::string::npos) << text;
  EXPECT_EQ(text.find("executor, fallback"), std::string::npos) << "nobody took it: " << text;
  executor.run_fallback(*session_, {metaprof::Value(tensor({2})), metaprof::Value()});
  EXPECT_NE(explain(executor).find("executor, fallback\ngraph("), std::string::npos) << explain(executor);
}

// tanh becomes sigmoid.
void exchange_functions(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    if (node->name != "aten::tanh") continue;
    Node* sigmoid = graph.create_call(*context.registry.find("aten::sigmoid"), node->inputs);
    sigmoid->move_before(node);
    node->output()->replace_with(sigmoid->output());
    node->destroy();
  }
}

// Nobody makes what the graph gives.
void break_the_graph(Graph& graph, const PassContext&) {
  graph.add_output(graph.create_constant(1)->output());
}

TEST_F(PlanCache, PassesOfTheCallerAreRunAsTheOthers) {
  ExecutorOptions with_pass = options();
  with_pass.compile.custom = {{"exchange_functions", "tanh becomes sigmoid", exchange_functions}};
  GraphExecutor executor(graph(kChain), with_pass);
  executor.run(*session_, {metaprof::Value(tensor({2})), metaprof::Value()});
  const ExecutionPlan& plan = *executor.last_plan();
  EXPECT_NE(to_text(*plan.graph).find("aten::sigmoid"), std::string::npos);
  EXPECT_EQ(std::ranges::count(plan.passes, "exchange_functions", &PassRecord::pass), 1);

  with_pass.compile.disabled = {"exchange_functions"};
  GraphExecutor without(graph(kChain), with_pass);
  without.run(*session_, {metaprof::Value(tensor({2})), metaprof::Value()});
  EXPECT_EQ(to_text(*without.last_plan()->graph).find("aten::sigmoid"), std::string::npos);
}

TEST_F(PlanCache, WhatAPassLeavesIsVerified) {
  ExecutorOptions with_pass = options();
  with_pass.compile.custom = {{"break_the_graph", "gives what nobody makes", break_the_graph}};
  GraphExecutor executor(graph(kChain), with_pass);
  try {
    executor.run(*session_, {metaprof::Value(tensor({2})), metaprof::Value()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "the pass break_the_graph leaves a graph that is none: prim::Return: input 1 is not made before it");
  }
}

// None of an optional argument that is no tensor, too, is a kind of its own.
TEST_F(PlanCache, NoneMisses) {
  GraphExecutor executor(graph(R"(graph(%x: Tensor, %n: int?) {
    %given = aten::__isnot__(%n, None)
    %y: Tensor = prim::If(%given) {
      %a = aten::neg(%x)
      -> (%a)
    } {
      -> (%x)
    }
    -> (%y)
  })"),
                         options());
  executor.run(*session_, {metaprof::Value(tensor({2})), metaprof::Value(3)});
  executor.run(*session_, {metaprof::Value(tensor({2})), metaprof::Value(4)});
  EXPECT_EQ(executor.plans().size(), 1u);
  executor.run(*session_, {metaprof::Value(tensor({2})), metaprof::Value()});
  EXPECT_EQ(executor.plans().size(), 2u);
  EXPECT_EQ(to_text(*executor.last_plan()->graph).find("prim::If"), std::string::npos);
}

}  // namespace
}  // namespace metaprof::ir
