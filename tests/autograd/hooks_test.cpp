// Hooks on tensors, nodes and leaves: in which order they run, and what they do to memory.

#include "meta/autograd/graph/hooks.h"

#include "meta/autograd/graph/views.h"
#include "meta/platform/platform.h"
#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

class Hooks : public Graph {
 protected:
  // A hook that only writes down that it ran.
  GradientHook note(std::string text) {
    return [this, text](const Tensor&) {
      log_.push_back(text);
      return Tensor();
    };
  }
  CallNames log_;
};

TEST_F(Hooks, RunInOrderAroundTheirNode) {
  const Tensor x = leaf({4});
  const Tensor y = exp(x);
  Node& node = *grad_fn(y);
  retain_grad(y);  // registered first, runs last of the hooks on y
  register_hook(y, note("first hook on y"));
  register_hook(y, [&](const Tensor&) {
    log_.push_back(y.grad().defined() ? "y.grad is there" : "y.grad is not there yet");
    return Tensor();
  });
  register_pre_hook(node, [&](Gradients&) {
    log_.push_back(y.grad().defined() ? "before the node, y.grad is there" : "before the node");
  });
  register_post_hook(node, [&](Gradients&, const Gradients&) { log_.push_back("after the node"); });
  register_hook(x, note("hook on x"));
  register_post_accumulate_grad_hook(x, [&](const Tensor& leaf) {
    log_.push_back(leaf.grad().defined() ? "x.grad has grown" : "x.grad is missing");
  });
  run_backward(y);
  EXPECT_EQ(log_, (CallNames{"first hook on y", "y.grad is not there yet", "before the node, y.grad is there",
                             "after the node", "hook on x", "x.grad has grown"}));
}

TEST_F(Hooks, OfALeafOutliveItsAccumulator) {
  const Tensor x = leaf({4});
  register_hook(x, note("hook"));
  register_post_accumulate_grad_hook(x, [&](const Tensor&) { log_.push_back("accumulated"); });
  EXPECT_EQ(x->extra->accumulator, nullptr);  // no graph is there to hold it
  run_backward(exp(x));
  run_backward(exp(x));
  EXPECT_EQ(log_, (CallNames{"hook", "accumulated", "hook", "accumulated"}));
}

TEST_F(Hooks, RunOncePerTensorWithTheSumOfItsGradients) {
  const Tensor x = leaf({4});
  const Tensor y = exp(x);
  register_hook(y, note("y"));
  run_backward(mul(y, y));
  EXPECT_EQ(log_, CallNames{"y"});
}

TEST_F(Hooks, ReplaceAGradient) {
  const Tensor x = leaf({1024});
  const Tensor y = exp(x);
  const Tensor replacement = tensor({1024});
  register_hook(y, [&](const Tensor&) { return replacement; });
  register_hook(y, [&](const Tensor& gradient) {
    EXPECT_EQ(gradient, replacement);  // the second hook sees what the first one made of it
    return Tensor();
  });
  run_backward(y);
}

TEST_F(Hooks, MayNotChangeTheSizes) {
  const Tensor x = leaf({4});
  const Tensor y = exp(x);
  register_hook(y, [&](const Tensor&) { return tensor({5}); });
  const std::string message = message_of([&] { run_backward(y); });
  expect_mentions(message, "ExpBackward0: a hook returned a gradient of other sizes: [5] instead of [4]");
}

TEST_F(Hooks, CanBeTakenOutAndLetGoOfWhatTheyHeld) {
  const Tensor x = leaf({4});
  const Tensor y = exp(x);
  Tensor held = tensor({256});
  const int64_t without = live() - 256 * 4;
  HookHandle handle = register_hook(y, [this, held](const Tensor&) {
    log_.push_back("ran");
    return Tensor();
  });
  held = Tensor();
  EXPECT_EQ(live(), without + 256 * 4);
  handle.remove();
  EXPECT_EQ(live(), without);
  run_backward(y);
  EXPECT_EQ(log_, CallNames{});
}

TEST_F(Hooks, MayTakeThemselvesOut) {
  const Tensor x = leaf({4});
  std::optional<HookHandle> handle;
  handle = register_hook(x, [&](const Tensor&) {
    handle->remove();
    log_.push_back("once");
    return Tensor();
  });
  run_backward(exp(x));
  run_backward(exp(x));
  EXPECT_EQ(log_, CallNames{"once"});
}

TEST_F(Hooks, StayWithTheValueBeforeAnInPlaceWrite) {
  const Tensor x = leaf({4});
  const Tensor y = neg(x);
  register_hook(y, note("before the write"));
  call<"mul_.Tensor">(*session_, y, 2);
  register_hook(y, note("after the write"));
  run_backward(y);
  EXPECT_EQ(log_, (CallNames{"after the write", "before the write"}));
}

TEST_F(Hooks, RetainGradFollowsAnInPlaceWrite) {
  const Tensor x = leaf({4});
  const Tensor y = neg(x);
  retain_grad(y);
  Node& before = *grad_fn(y);
  call<"mul_.Tensor">(*session_, y, 2);
  EXPECT_TRUE(before.hooks->retain.empty());
  EXPECT_EQ(grad_fn(y)->hooks->retain.size(), 1U);
  run_backward(y);
  EXPECT_TRUE(y.grad().defined());
}

TEST_F(Hooks, RetainGradCopiesAndDoesNotKeepTheTensorAlive) {
  const Tensor x = leaf({256});
  Tensor y = mul(x, 2), z = neg(y);
  retain_grad(y);
  const int64_t before = live();
  y = Tensor();
  EXPECT_EQ(live(), before - 256 * 4);
  run_backward(z);  // nobody is left to whom the gradient could be given

  y = mul(x, 2), z = neg(y);
  retain_grad(y);
  x->extra->grad.reset();
  const size_t begin = mark();
  run_backward(z);
  EXPECT_EQ(calls_since(begin), (CallNames{"neg", "clone", "mul.Tensor"}));
  EXPECT_EQ(describe(y.grad()), "f32[256]");
}

// A gradient that only the engine holds becomes .grad without a copy. A hook that keeps it forces one.
TEST_F(Hooks, KeepingAGradientCostsACopyAtTheLeaf) {
  const Tensor x = leaf({256});
  size_t begin = mark();
  run_backward(mul(x, 2));
  EXPECT_EQ(calls_since(begin),
            (CallNames{"mul.Tensor", "mul.Tensor"}));  // no copy: the gradient is taken over

  x->extra->grad.reset();
  Tensor kept;
  register_hook(x, [&](const Tensor& gradient) {
    kept = gradient;
    return Tensor();
  });
  begin = mark();
  run_backward(mul(x, 2));
  EXPECT_EQ(calls_since(begin), (CallNames{"mul.Tensor", "mul.Tensor", "new_empty_strided", "copy_"}));
}

// The engine holds the incoming gradients for a hook that runs after the accumulation; that handle does not
// count (torch/csrc/autograd/functions/accumulate_grad.cpp: 1 + !post_hooks().empty()).
TEST_F(Hooks, AHookAfterTheAccumulatorCostsNoCopy) {
  const Tensor x = leaf({256});
  const Tensor y = mul(x, 2);
  register_post_hook(*gradient_edge(x).node, [&](Gradients&, const Gradients& incoming) {
    EXPECT_EQ(describe(incoming[0]), "f32[256]");
  });
  const size_t begin = mark();
  run_backward(y);
  EXPECT_EQ(calls_since(begin), CallNames{"mul.Tensor"});
}

// An optimizer step in the hook, then no gradient: the second layer's gradient is gone before the first one's
// is made.
TEST_F(Hooks, FreeingAGradientInItsHookLowersThePeak) {
  auto peak_of_backward = [&](bool free_at_once) {
    session_ = make_session(platform_named("h200"));
    const Tensor a = leaf({256}), b = leaf({256});
    if (free_at_once)
      for (const Tensor& one : {a, b})
        register_post_accumulate_grad_hook(one, [](const Tensor& leaf) { leaf->extra->grad.reset(); });
    const Tensor y = add(mul(a, 2), mul(b, 2));
    const int64_t before = live();
    const size_t begin = mark();
    run_backward(y);
    return peak_bytes(*session_, begin) - before;
  };
  // The root's gradient and, one after the other, those of a and b: 3 · 1 KiB, or one of the leaves' at a
  // time.
  EXPECT_EQ(peak_of_backward(false), 3 * 1024);
  EXPECT_EQ(peak_of_backward(true), 2 * 1024);
}

TEST_F(Hooks, OnTensorsRunForCapturedGradientsToo) {
  const Tensor x = leaf({4});
  const Tensor replacement = tensor({4});
  register_hook(x, [&](const Tensor&) { return replacement; });
  const Gradients gradients = run_grad(exp(x), {x});
  EXPECT_EQ(gradients[0], replacement);
  EXPECT_FALSE(x.grad().defined());
}

TEST_F(Hooks, NeedATensorThatRequiresGrad) {
  const Tensor plain = tensor({4}), x = leaf({4});
  const Tensor y = exp(x);
  expect_mentions(message_of([&] { register_hook(plain, note("")); }),
                  "a hook needs a tensor that requires grad");
  expect_mentions(message_of([&] { retain_grad(plain); }), "retain_grad needs a tensor that requires grad");
  expect_mentions(message_of([&] { register_post_accumulate_grad_hook(y, [](const Tensor&) {}); }),
                  "a post-accumulate-grad hook needs a leaf");
}

}  // namespace
}  // namespace metaprof
