// The engine: which nodes run, in which order, what they pass on, and what it refuses.

#include "meta/autograd/graph/hooks.h"
#include "meta/autograd/graph/state.h"
#include "meta/autograd/graph/views.h"
#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

class Engine : public Graph {};

TEST_F(Engine, TheNodeMadeLastRunsFirstAndAccumulationAtOnce) {
  const Tensor a = leaf({4}), b = leaf({4});
  const Tensor first = exp(a), second = neg(b);
  const Tensor sum = add(first, second);
  const size_t begin = mark();
  run_backward(sum);
  // neg was made after exp; b's gradient is added to .grad before exp's turn comes.
  EXPECT_EQ(nodes_since(begin),
            (CallNames{"AddBackward0", "NegBackward0", "AccumulateGrad", "ExpBackward0", "AccumulateGrad"}));
}

// Host and device have a queue and a thread each, which are taken to be equally fast. A single queue would
// run both nodes of the host, which were made later, before the first one of the device.
TEST_F(Engine, DevicesTakeTurns) {
  const Tensor on_device = leaf({4});
  const Tensor on_host = session_->empty(Sizes{4}, DType::f32, kHost);
  on_host->requires_grad = true;
  const Tensor device = neg(exp(on_device));
  const Tensor host = call<"cos">(*session_, call<"sin">(*session_, on_host));
  const Tensor moved = call<"to.device">(*session_, host, Device{DeviceType::cuda}, DType::f32);
  const Tensor sum = add(device, moved);
  const size_t begin = mark();
  run_backward(sum);
  EXPECT_EQ(nodes_since(begin),
            (CallNames{"AddBackward0",
                       "ToCopyBackward0",  // one after the other: neg's and this one's are one queue
                       "CosBackward0", "NegBackward0",  // a round: the host's, the device's
                       "SinBackward0", "ExpBackward0",  //
                       "AccumulateGrad", "AccumulateGrad"}));
}

TEST_F(Engine, ANodeWaitsForAllItsGradients) {
  const Tensor x = leaf({4});
  const Tensor y = exp(x), z = neg(y), sum = mul(z, y);
  const size_t begin = mark();
  run_backward(sum);
  EXPECT_EQ(nodes_since(begin),
            (CallNames{"MulBackward0", "NegBackward0", "ExpBackward0", "AccumulateGrad"}));
}

TEST_F(Engine, RunsOnlyWhatLeadsToTheInputs) {
  const Tensor x = leaf({8, 4}), w = leaf({4, 4}), bias = leaf({4});
  const Tensor y = call<"addmm">(*session_, bias, mm(x, w), w);
  const size_t begin = mark();
  const Gradients gradients = run_grad(y, {x});
  EXPECT_EQ(describe(gradients[0]), "f32[8,4]");
  EXPECT_EQ(nodes_since(begin),
            (CallNames{"AddmmBackward0", "MmBackward0", "AccumulateGrad"}));  // x's, which gives it
  // One matrix product per layer: no gradient of a weight or bias is computed.
  const CallNames calls = calls_since(begin);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "mm"), 2);
  EXPECT_FALSE(x.grad().defined());
}

TEST_F(Engine, BackwardWithInputsLeavesOtherLeavesAlone) {
  const Tensor a = leaf({4}), b = leaf({4});
  const Tensor y = mul(a, b);
  const Tensor roots[] = {y}, ones[] = {tensor({4})}, inputs[] = {b};
  EXPECT_TRUE(backward(*session_, roots, ones, inputs).empty());
  EXPECT_FALSE(a.grad().defined());
  EXPECT_TRUE(b.grad().defined());
}

TEST_F(Engine, BackwardWithAnInputThatIsNoLeafKeepsItsGradient) {
  const Tensor a = leaf({4}), y = exp(a), z = exp(y);
  const Tensor roots[] = {z}, ones[] = {tensor({4})}, inputs[] = {y};
  backward(*session_, roots, ones, inputs);
  EXPECT_TRUE(y.grad().defined());
  EXPECT_FALSE(a.grad().defined());
}

TEST_F(Engine, TheSameInputTwice) {
  const Tensor x = leaf({4});
  const Gradients gradients = run_grad(exp(x), {x, x});
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST_F(Engine, GradientsOfAnIntermediateTensorAndOfALeafBehindIt) {
  const Tensor x = leaf({4}), y = exp(x), z = exp(y);
  const Gradients gradients = run_grad(z, {y, x});
  EXPECT_TRUE(gradients[0].defined());
  EXPECT_TRUE(gradients[1].defined());
}

TEST_F(Engine, AnUnusedInputIsAnErrorUnlessAllowed) {
  const Tensor x = leaf({4}), unused = leaf({5});
  const Tensor y = exp(x);
  EXPECT_EQ(message_of([&] {
              run_grad(y, {x, unused}, {.retain_graph = true});
            }),
            "grad: input 1 was not used in the graph; set allow_unused if that is meant");
  EXPECT_FALSE(run_grad(y, {x, unused}, {.retain_graph = true, .allow_unused = true})[1].defined());
  EXPECT_EQ(describe(run_grad(y, {x, unused}, {.materialize = true})[1]), "f32[5]");
}

TEST_F(Engine, SeveralRootsShareOneStart) {
  const Tensor x = leaf({4});
  const Tensor a = exp(x), b = neg(x);
  const Tensor roots[] = {a, b}, ones[] = {tensor({4}), tensor({4})};
  const size_t begin = mark();
  backward(*session_, roots, ones);
  EXPECT_EQ(nodes_since(begin), (CallNames{"GraphRoot", "NegBackward0", "ExpBackward0", "AccumulateGrad"}));
}

TEST_F(Engine, ALeafCanBeARoot) {
  const Tensor x = leaf({4});
  run_backward(x);
  EXPECT_EQ(describe(x.grad()), "f32[4]");
}

TEST_F(Engine, RefusesRootsThatHaveNoGraphOrNoGradient) {
  const Tensor x = leaf({4});
  const Tensor plain[] = {tensor({1})}, vector[] = {exp(x)};
  EXPECT_EQ(message_of([&] { backward(*session_, plain); }),
            "backward: output 0 does not require grad and has no grad_fn");
  EXPECT_EQ(message_of([&] { backward(*session_, vector); }),
            "backward: a gradient can be made up only for outputs of one element; got f32[4]");
  const Tensor wrong[] = {tensor({5})}, several[] = {tensor({4}), tensor({4})};
  EXPECT_EQ(message_of([&] { backward(*session_, vector, wrong); }),
            "backward: gradient 0 is f32[5], but output 0 is f32[4]: their sizes must be equal");
  EXPECT_EQ(message_of([&] { backward(*session_, vector, several); }), "backward: 2 gradients for 1 outputs");
  const Tensor inputs[] = {plain[0]}, ones[] = {tensor({4})};
  EXPECT_EQ(message_of([&] { backward(*session_, vector, ones, inputs); }),
            "backward: an input does not require grad: f32[1]");
}

TEST_F(Engine, IntegerResultsHaveNoHistory) {
  const Tensor x = leaf({4, 5});
  const Results found = call_all<"max.dim">(*session_, x, 1);
  EXPECT_TRUE(found[0].requires_grad());
  EXPECT_FALSE(found[1].requires_grad());
}

TEST_F(Engine, SumsAndCastsGradientsToWhatTheyBelongTo) {
  const Tensor bias = leaf({3}, DType::bf16), x = tensor({5, 3});
  const Tensor y = add(x, bias);  // f32[5,3]
  const size_t begin = mark();
  run_backward(y);
  EXPECT_EQ(describe(bias.grad()), "bf16[3]");
  EXPECT_EQ(calls_since(begin), (CallNames{"sum.dim_IntList", "view", "to.dtype"}));
}

TEST_F(Engine, CastsTheGradientOfARoot) {
  const Tensor x = leaf({4}, DType::bf16);
  const Tensor roots[] = {neg(x)}, gradients[] = {tensor({4})};
  const size_t begin = mark();
  backward(*session_, roots, gradients);
  EXPECT_EQ(calls_since(begin), (CallNames{"to.dtype", "neg"}));
  EXPECT_EQ(describe(x.grad()), "bf16[4]");
}

TEST_F(Engine, ANodeThatFailsEndsInTheTrace) {
  const Tensor x = leaf({4}), y = exp(x);
  call<"zero_">(*session_, y);
  message_of([&] { run_backward(y); });
  int open = 0;
  for (const Event& event : session_->trace.events) {
    open += event.kind == Event::Kind::node || event.kind == Event::Kind::call;
    open -= event.kind == Event::Kind::end;
  }
  EXPECT_EQ(open, 0);
}

TEST_F(Engine, AFormulaOfWrongSizesIsRefused) {
  struct Wrong final : Node {
    Wrong(const Tensor& of, Tensor gives) : Node(session_of(of), "Wrong", 0), gives(std::move(gives)) {
      add_next(gradient_edge(of));
    }
    Gradients apply(Gradients&) override { return {gives}; }
    Tensor gives;
  };
  const Tensor x = leaf({3}), y = tensor({3});
  Ref<Node> node = make<Wrong>(x, tensor({4}));
  set_gradient_edge(y, {node, node->add_output(y)});
  EXPECT_EQ(message_of([&] { run_backward(y); }),
            "Wrong: returned an invalid gradient at index 0: got [4], expected a shape that sums to [3]");
}

TEST_F(Engine, UndefinedGradientsAreSkipped) {
  const Tensor x = leaf({2, 3});
  const Results split = call_all<"unbind.int">(*session_, x, 0);
  run_backward(split.tensors()[1]);  // the other half's gradient stays undefined until unbind's formula
  EXPECT_EQ(describe(x.grad()), "f32[2,3]");
}

TEST_F(Engine, GradientsOfGradientsOfGradients) {
  const Tensor x = leaf({4});
  Tensor y = call<"pow.Tensor_Scalar">(*session_, x, 5);
  for (int order = 0; order < 4; ++order) y = run_grad(y, {x}, {.create_graph = true})[0];
  EXPECT_TRUE(y.requires_grad());
  run_backward(y);
  EXPECT_EQ(describe(x.grad()), "f32[4]");
}

TEST_F(Engine, CreateGraphAddsToGradOutOfPlace) {
  const Tensor x = leaf({4});
  run_backward(exp(x), {.create_graph = true});
  const Tensor first = x.grad();
  EXPECT_TRUE(first.requires_grad());
  run_backward(exp(x), {.create_graph = true});
  EXPECT_NE(x.grad(), first);
  // As the framework warns: leaf -> .grad -> the graph that made it -> leaf is a circle, to be broken by
  // hand.
  x->extra->grad.reset();
}

// A hook that runs a backward of its own: that one is over before the outer one goes on.
TEST_F(Engine, ABackwardInsideABackward) {
  const Tensor x = leaf({4}), inner = leaf({4});
  const Tensor y = exp(x);
  register_hook(y, [&](const Tensor&) {
    Scoped<bool> grad_mode(session_->modes.grad, true);
    run_backward(neg(inner));
    return Tensor();
  });
  const size_t begin = mark();
  run_backward(mul(y, 2));
  EXPECT_EQ(nodes_since(begin),
            (CallNames{"MulBackward0", "ExpBackward0", "NegBackward0", "AccumulateGrad", "AccumulateGrad"}));
  EXPECT_EQ(autograd_state(*session_).reentrant_depth, 0U);
}

// Both run nodes of one graph: the inner one must leave the outer one's counts alone.
TEST_F(Engine, ABackwardInsideABackwardThroughTheSameNodes) {
  const Tensor x = leaf({4});
  const Tensor shared = neg(x);
  const Tensor a = neg(shared), b = exp(shared);
  register_hook(a, [&](const Tensor&) {
    run_backward(b, {.retain_graph = true});
    return Tensor();
  });
  const size_t begin = mark();
  run_backward(add(a, b), {.retain_graph = true});
  const CallNames ran = nodes_since(begin);
  EXPECT_EQ(std::count(ran.begin(), ran.end(), "ExpBackward0"), 2);
  EXPECT_EQ(std::count(ran.begin(), ran.end(), "AccumulateGrad"), 2);
}

TEST_F(Engine, AnomalyModeNamesTheForwardCall) {
  AutogradState& state = autograd_state(*session_);
  const Tensor x = leaf({4});
  session_->module = session_->trace.intern("layers.0.gate");
  const Tensor y = mul(x, 2), z = mul(y, y);
  session_->module = 0;
  call<"add_.Tensor">(*session_, y, 1);
  EXPECT_EQ(message_of([&] { run_backward(z); }).find("anomaly"), std::string::npos);
  state.anomaly = true;
  expect_mentions(message_of([&] { run_backward(z); }),
                  "expected version 0 (anomaly mode: MulBackward0 was made by aten::mul.Tensor in "
                  "'layers.0.gate')");
}

TEST_F(Engine, AnomalyModeGoesBackThroughHigherOrders) {
  const Tensor x = leaf({4}), w = leaf({4});
  const Tensor e = exp(w), y = mul(x, e);
  const Tensor first = run_grad(y, {w}, {.create_graph = true})[0];
  call<"zero_">(*session_, call<"detach">(*session_, e));
  autograd_state(*session_).anomaly = true;
  expect_mentions(message_of([&] { run_backward(first); }),
                  "MulBackward0 was made by aten::mul.Tensor; ExpBackward0 was made by aten::exp)");
}

TEST_F(Engine, AnomalyModeLooksForNaNsInEveryGradient) {
  const Tensor x = leaf({4});
  AutogradState& state = autograd_state(*session_);
  state.anomaly = true;
  size_t begin = mark();
  run_backward(neg(x));
  EXPECT_EQ(calls_since(begin), (CallNames{"neg", "neg", "isnan", "any"}));
  state.anomaly_checks_nan = false;
  begin = mark();
  run_backward(neg(x));
  EXPECT_EQ(calls_since(begin), (CallNames{"neg", "neg", "add_.Tensor"}));
}

// Each of a million nodes owns the next one.
TEST_F(Engine, AChainOfAMillionNodesRunsAndDies) {
  constexpr int kLength = 1'000'000;
  const Tensor x = leaf({1});
  const int64_t before = live();
  {
    Tensor end = x;
    for (int i = 0; i < kLength; ++i) end = neg(end);
    EXPECT_EQ(grad_fn(end)->sequence, kLength - 1U);
  }  // never run, only destroyed
  EXPECT_EQ(live(), before);
  {
    Tensor end = x;
    for (int i = 0; i < kLength; ++i) end = neg(end);
    run_backward(end);
  }
  EXPECT_EQ(live(), before + 4);
}

// The same for views, each of which has its own node, and for a chain behind create_graph.
TEST_F(Engine, LongChainsOfViewsAndOfDerivativesDie) {
  const Tensor x = leaf({1});
  Tensor end = exp(x);
  for (int i = 0; i < 100'000; ++i) end = view(end, Sizes{1});
  const Tensor gradient = run_grad(end, {x}, {.create_graph = true})[0];
  EXPECT_TRUE(gradient.requires_grad());
}

}  // namespace
}  // namespace metaprof
