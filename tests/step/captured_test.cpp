// Captured programs: calls that no operator makes, and what is said of those that cannot be made.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "meta/allocator/caching_allocator.h"
#include "meta/platform/platform.h"
#include "profiler/allocator/phases.h"
#include "program/text/text.h"
#include "step/step.h"

namespace metaprof {
namespace {

const std::string kHead = "metaprof program 1\ncaptured torch 2.11.0\nstep::phase(\"setup\", 0, -1)\n";

Trace run(const std::string& calls, const StepOptions& options = {}) {
  return run_steps(parse_program(kHead + calls, "step.mp"), platform_named("h200"), options);
}

std::string message(const std::string& calls, const StepOptions& options = {}) {
  try {
    run(calls, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Phases phases(const std::string& calls) {
  const Trace trace = run(calls);
  CachingAllocator allocator;
  return replay(trace, kFirstGpu, allocator);
}

// loss = sum(w * x), w of 1000 floats: 4000 bytes, 4096 of a block.
const std::string kStep = R"(%w: f32[1000] grad = step::tensor()
step::name("parameter", "w", %w)
step::phase("forward", 0, -1)
%x: f32[1000] = step::tensor()
%y: f32[1000] = aten::mul.Tensor(%w, %x) drop %x
%loss: f32[] = aten::sum(%y) drop %y
step::phase("backward", 0, -1)
%one: f32[] = aten::ones_like(%loss)
step::backward([%loss], [%one], False, False, tensors[], True) drop %one, %loss
step::phase("optimizer", 0, -1)
step::grad_mode(False)
%g: f32[1000] = step::gradient(%w)
_ = aten::add_.Tensor(%w, %g, alpha=-0.1)
step::phase("zero_grad", 0, -1)
step::set_gradient(%w, None) drop %g
)";

TEST(Captured, AStepTakesWhatItsCallsTake) {
  const Phases found = phases(kStep);
  ASSERT_EQ(found.rows.size(), 5u);
  const auto requested = [&](size_t row) { return found.rows[row].numbers.requested_bytes; };
  EXPECT_EQ(requested(0).current, 4000);  // w
  // x is kept for the gradient of w; y is not, and w needs none for x. sum makes 4 bytes.
  EXPECT_EQ(requested(1).peak, 4000 + 4000 + 4000 + 4);
  EXPECT_EQ(requested(1).current, 4000 + 4000 + 4);
  EXPECT_EQ(requested(2).current, 4000 + 4000);  // w and its gradient
  EXPECT_EQ(requested(3).peak, 4000 + 4000);     // in place
  EXPECT_EQ(requested(4).current, 4000);
}

// Scores of 2 · 64 · 64 elements are made by the operators alone that flash attention stands for.
TEST(Captured, WhatMayComputeAttentionIsSwitched) {
  const auto largest = [](const std::string& allowed) {
    const Trace trace = run(R"(step::phase("forward", 0, -1)
)" + allowed + R"(%q: bf16[1,2,64,8] = aten::zeros([1, 2, 64, 8], dtype=bf16, device=device(model))
%y: bf16[1,2,64,8] = aten::scaled_dot_product_attention(%q, %q, %q)
)");
    int64_t bytes = 0;
    for (const StorageRecord& storage : trace.storages)
      if (storage.device == kFirstGpu && storage.category != Category::workspace)
        bytes = std::max(bytes, storage.bytes.count);
    return bytes;
  };
  const int64_t heads = 2048, scores = 16 * heads;  // 64 keys in place of 8 columns, in f32
  EXPECT_EQ(largest("step::attention(True, False, False, False)\n"), heads);
  EXPECT_EQ(largest("step::attention(False, False, True, False)\n"), scores);
}

TEST(Captured, TheStorageSaysWhatItIsFor) {
  const Trace trace = run(kStep);
  ASSERT_EQ(trace.parameters.size(), 1u);
  EXPECT_EQ(trace.parameters[0].names[0], "w");
  EXPECT_TRUE(trace.parameters[0].requires_grad);
  EXPECT_EQ(trace.losses.size(), 1u);
  EXPECT_NE(trace.losses[0], 0u);
}

TEST(Captured, TheNextModelTakesThePlaceOfOneThatIsGone) {
  const Trace trace = run(R"(%first: f32[10] grad = step::tensor()
step::name("parameter", "w", %first) drop %first
%second: f32[20] grad = step::tensor()
step::name("parameter", "w", %second)
step::name("parameter", "v", %second)
)");
  ASSERT_EQ(trace.parameters.size(), 2u);
  EXPECT_EQ(trace.parameters[0].sizes, Sizes{20});
}

TEST(Captured, DataMovesToAnotherDevice) {
  const Phases found = phases(R"(%w: f32[1000] on cpu grad = step::tensor()
%d: f32[1000] = aten::to.device(%w, device(model), f32)
step::set_data(%w, %d) drop %d
step::phase("forward", 0, -1)
step::phase("zero_grad", 0, -1)
%a: f32[500] offset 500 = step::alias(%w) drop %w
)");
  EXPECT_EQ(found.rows[0].numbers.requested_bytes.current, 4000);
  EXPECT_EQ(found.rows[1].numbers.requested_bytes.current, 4000);
  EXPECT_EQ(found.rows[2].numbers.requested_bytes.current, 4000);  // the alias keeps all of it
}

TEST(Captured, AutocastKeepsCastsOfParametersUntilItsRegionEnds) {
  const Phases found = phases(R"(%w: f32[8,8] grad = step::tensor()
%x: f32[4,8] = step::tensor()
step::phase("forward", 0, -1)
step::autocast_enter(True, bf16, True)
%y: bf16[4,8] = aten::linear(%x, %w) drop %y
step::phase("backward", 0, -1)
step::autocast_leave()
)");
  // The graph goes with %y, but the cast of w (64 elements of 2 bytes) stays with the region.
  constexpr int64_t kWorkspace = 32 << 20;  // cuBLAS's on an H200
  const int64_t before = found.rows[0].numbers.requested_bytes.current;
  EXPECT_EQ(found.rows[1].numbers.requested_bytes.current, before + 128 + kWorkspace);
  EXPECT_LT(found.rows[2].numbers.requested_bytes.current, found.rows[1].numbers.requested_bytes.current);
}

// y = exp(2 w), whose backward multiplies the gradient by y, which the forward has saved.
std::string with_function(const std::string& backward) {
  return R"(%w: f32[1000] grad = step::tensor()
step::phase("forward", 0, -1)
step::function_enter("net::Growth")
%t: f32[1000] = aten::mul.Tensor(%w, 2.0)
%y: f32[1000] = aten::exp(%t) drop %t
graph {
  input %g: f32[1000]
  input %s: f32[1000]
  %r: f32[1000] = aten::mul.Tensor(%g, %s) drop %s
  return %r
} as g0
step::function_leave("net::Growth", [%w], [%y], [%y], tensors[], )" +
         backward + R"()
%l: f32[] = aten::sum(%y) drop %y
step::phase("backward", 0, -1)
step::backward([%l], [None], False, False, tensors[], True)
)";
}

TEST(Captured, ACustomFunctionKeepsWhatItSavesUntilItsBackwardHasRun) {
  const Phases found = phases(with_function("graph(g0)"));
  ASSERT_EQ(found.rows.size(), 3u);
  const auto requested = [&](size_t row) { return found.rows[row].numbers.requested_bytes; };
  EXPECT_EQ(requested(1).peak, 4000 + 4000 + 4000);          // w, t, y
  EXPECT_EQ(requested(1).current, 4000 + 4000 + 4);          // w, y, the loss
  EXPECT_EQ(requested(2).peak, 4000 + 4000 + 4 + 4 + 4000);  // … a one, and the gradient, which w takes
  EXPECT_EQ(requested(2).current, 4000 + 4000 + 4);          // w, its gradient, the loss
}

TEST(Captured, ACustomFunctionWithoutABackwardIsNamed) {
  StepOptions options;
  options.strict = true;
  EXPECT_EQ(message(with_function("None"), options),
            "step.mp: the backward of net::Growth is not known: leave out --strict to go on");
  const Trace trace = run(with_function("None"));
  EXPECT_TRUE(std::ranges::any_of(trace.calls, [&](const CallRecord& call) {
    return call.unmodelled && trace.text(call.op) == "net::Growth";
  }));
  EXPECT_EQ(message("step::function_leave(\"f\", tensors[], tensors[], tensors[], tensors[], None)\n"),
            "step::function_leave: no function has been entered");
  EXPECT_EQ(message("step::function_enter(\"f\")\nstep::function_leave(\"f\")\n"),
            "step::function_leave: takes 6 arguments");
}

// Compiled backwards give back what they have saved while they run: y, once it is multiplied, before more is made.
// So they do with the gradient of y, which the sum has expanded of four bytes: here a copy of it, of 4000.
TEST(Captured, ACustomFunctionMayGiveBackWhatItSavesAndIsGivenWhileItsBackwardRuns) {
  const auto peak_of_backward = [](const std::string& first) {
    std::string calls = with_function("graph(g0)");
    calls.insert(calls.find("  %r: f32[1000]"), first);
    calls.replace(calls.find(" drop %s"), 8, " drop %g, %s");
    calls.replace(calls.find("aten::sum(%y) drop %y"), 21, "aten::dot(%y, %y) drop %y");
    calls.insert(calls.find("  return %r"),
                 "  %more: f32[2000] = aten::zeros([2000], device=device(model))\n");
    return phases(calls).rows[2].numbers.requested_bytes.peak;
  };
  const int64_t held = peak_of_backward("");
  EXPECT_EQ(held, peak_of_backward("  step::clear_saved()\n") + 4000);
  EXPECT_EQ(held, peak_of_backward("  step::clear_gradients()\n") + 4000);
}

// Of two gradients for a result that stands for a tensor of a class of its own a new one is made. Else the second one is added to the first.
TEST(Captured, GradientsOfWrappedResultsAreNotAddedInPlace) {
  const auto additions = [](const std::string& wrapped, const std::string& name) {
    std::string calls = with_function("graph(g0)" + wrapped);
    calls.replace(calls.find("%l: f32[] = aten::sum(%y) drop %y"), 33,
                  "%a: f32[1000] = aten::mul.Tensor(%y, 3.0)\n"
                  "%b: f32[1000] = aten::mul.Tensor(%y, 3.0) drop %y\n"
                  "%l: f32[] = aten::dot(%a, %b) drop %a, %b");
    const Trace trace = run(calls);
    return std::ranges::count_if(trace.calls,
                                 [&](const CallRecord& call) { return trace.text(call.op) == name; });
  };
  for (const std::string in_place : {"", ", False"}) {
    EXPECT_EQ(additions(in_place, "aten::add_.Tensor"), 1);
    EXPECT_EQ(additions(in_place, "aten::add.Tensor"), 0);
  }
  EXPECT_EQ(additions(", True", "aten::add_.Tensor"), 0);
  EXPECT_EQ(additions(", True", "aten::add.Tensor"), 1);
}

// The backward of FSDP's functions is a hook, whose calls change nothing of the gradients unless it gives others.
TEST(Captured, AFunctionWhoseBackwardIsAHookPassesGradientsOn) {
  std::string calls = with_function("3");
  calls.replace(calls.find("graph {"), calls.find("step::function_leave") - calls.find("graph {"), "");
  calls += "%g: f32[1000] = step::gradient(%w)\n";
  StepOptions strict;
  strict.strict = true;
  EXPECT_EQ(message(calls, strict), "no error");
}

TEST(Captured, StepsAreThePrograms) {
  StepOptions options;
  options.clip_norm = 1.0;
  EXPECT_EQ(message(kStep, options), "--clip-norm: step.mp was captured from a run, whose steps are its own");
  options = {};
  options.optimizer = "none";
  EXPECT_EQ(message(kStep, options), "--optimizer: step.mp was captured from a run, whose steps are its own");
  options = {};
  options.strict = true;
  EXPECT_EQ(message(kStep, options), "no error");
}

TEST(Captured, CallsThatCannotBeMadeSayWhy) {
  const std::string w = "%w: f32[4] grad = step::tensor()\n";
  const std::pair<std::string, std::string> kCases[] = {
      {"step::phases()",
       "step::phases: a program has no such call: docs/reference/program.md lists those of step::"},
      {"step::phase(\"lunch\", 0, -1)", "step::phase: there is no phase 'lunch'"},
      {"step::phase(\"forward\", -1, -1)", "step::phase: -1 is no step"},
      {"step::phase(\"forward\")", "step::phase: takes more than 1 arguments"},
      {"step::autocast_leave()", "step::autocast_leave: no region of autocast is open"},
      {"step::autocast_enter(True, 99, True)", "step::autocast_enter: 99 is no dtype"},
      {"step::backward_leave()", "step::backward_leave: no backward has been entered"},
      {"step::hook_leave(0, None)", "step::hook_leave: no backward has been entered"},
      {"%x: f32[4] = step::tensor()\nstep::hook(0, \"gradient\", %x)", "step::hook: f32[4] has no gradient"},
      {w + "step::hook(0, \"lunch\", %w)", "step::hook: there are no hooks 'lunch'"},
      {w + "step::resize_storage(%w, -1)", "step::resize_storage: -1 bytes"},
      {"step::saved_on_host_leave()", "step::saved_on_host_leave: no region is open"},
      {"step::stream(70000)", "step::stream: 70000 is no stream"},
      {w + "step::backward([%w], [%w], False, False, tensors[], True, True)",
       "step::backward: what is called within it has no end"},
      {w + "step::backward([%w], [%w], False, False, tensors[], True, True)\nstep::hook_enter(3)\n"
           "step::backward_leave()",
       "step::hook_enter: the calls of hook 3 have no end"},
      {w + "%a = step::alias(%w)", "step::alias: its result has to say what it is, as %x: f32[2,3]"},
      {w + "step::name(\"lunch\", \"\", %w)", "step::name: tensors are for no 'lunch'"},
      {w + "step::set_data(%w, None)", "step::set_data: no tensor is known for argument 1"},
      {w + "step::backward([%w], [None], False, False, tensors[], True)",
       "backward: a gradient can be made up only for outputs of one element; got f32[4]"},
      {"step::placed(\"aten::mm\")",
       "step::placed: there is no operator 'aten::mm' that wants its weights placed"},
      {"step::clear_saved()", "step::clear_saved: no backward of a function runs"},
      {"step::clear_gradients()", "step::clear_gradients: no backward of a function runs"},
      {"step::keep_versions_leave()", "step::keep_versions_leave: none are kept"},
      {w + "step::record_stream(%w, -1)", "step::stream: -1 is no stream"},
      {w + "step::backward([None], [None], False, False, tensors[], True)",
       "step::backward: a tensor of argument 0 is not known"}};
  for (const auto& [calls, expected] : kCases) EXPECT_EQ(message(calls + "\n"), expected) << calls;
}

// kStep, in whose backward the optimizer steps as soon as the gradient of w is there.
TEST(Captured, HooksRunWithinTheBackward) {
  std::string calls = kStep;
  calls.replace(calls.find("step::phase(\"optimizer\""), std::string::npos, R"(step::hook_enter(7)
%g: f32[1000] = step::gradient(%w)
_ = aten::add_.Tensor(%w, %g, alpha=-0.1)
%h: f32[3000] = aten::zeros([3000], device=device(model))
step::set_gradient(%w, None) drop %g, %h
step::hook_leave(7, None)
step::backward_leave()
)");
  calls.replace(calls.find("tensors[], True)"), 16, "tensors[], True, True)");
  calls.insert(calls.find("step::phase(\"forward\""), "step::hook(7, \"accumulated\", %w)\n");
  const Phases found = phases(calls);
  ASSERT_EQ(found.rows.size(), 3u);
  const auto backward = found.rows[2].numbers.requested_bytes;
  EXPECT_EQ(backward.current, 4000);  // w: its gradient has gone
  // w, its gradient, and h beside them. The loss and its gradient, 4 bytes each, live until the backward returns.
  EXPECT_EQ(backward.peak, 4000 + 4000 + 12000 + 4 + 4);
}

// What a hook gives goes on in place of the gradient.
TEST(Captured, AHookOnATensorReplacesItsGradient) {
  std::string calls = kStep;
  calls.replace(calls.find("tensors[], True)"), 16, "tensors[], True, True)");
  calls.insert(calls.find("step::phase(\"optimizer\""), R"(%before: f32[1000] = step::hook_enter(0)
%after: f32[1000] = aten::mul.Tensor(%before, 2.0)
step::hook_leave(0, [%after]) drop %before, %after
step::backward_leave()
)");
  calls.insert(calls.find("%loss: f32[] = aten::sum"), "step::hook(0, \"gradient\", %y)\n");
  const auto multiplications = [](const Trace& trace) {
    return std::ranges::count_if(trace.calls, [&](const CallRecord& call) {
      return call.phase == Phase::backward && trace.text(call.op) == "aten::mul.Tensor";
    });
  };
  EXPECT_EQ(multiplications(run(calls)), multiplications(run(kStep)) + 1);
}

// The first part of a backward ends at x. What a hook before the product kept begins the second part, which ends at w.
const std::string kParts = R"(%w: f32[1000] grad = step::tensor()
%x: f32[1000] grad = step::tensor()
step::phase("forward", 0, -1)
%y: f32[1000] = aten::mul.Tensor(%w, %x)
%z: f32[1000] = aten::mul.Tensor(%y, 2.0) drop %y
%loss: f32[] = aten::sum(%z) drop %z
step::phase("backward", 0, -1)
%one: f32[] = aten::ones_like(%loss)
[%gx: f32[1000]] = step::backward([%loss], [%one], True, False, [%x], False, True) drop %one, %loss
%kept: f32[1000], %node = step::hook_enter(0, "MulBackward0", 0, [0, 0])
step::hook_leave(0, None)
step::backward_leave() drop %gx
step::phase("optimizer", 0, -1)
[%gw: f32[1000]] = step::backward([%node], [%kept], False, False, [%w], False) drop %node, %kept
)";

TEST(Captured, AHookBeforeANodeKeepsWhatTheRestOfTheBackwardBeginsWith) {
  const Phases found = phases(kParts);
  ASSERT_EQ(found.rows.size(), 4u);
  const auto requested = [&](size_t row) { return found.rows[row].numbers.requested_bytes; };
  EXPECT_EQ(requested(2).current, 4000 + 4000 + 4000);  // w, x, and what was kept
  EXPECT_EQ(requested(3).peak, 4000 + 4000 + 4000 + 4000);
  EXPECT_EQ(requested(3).current, 4000 + 4000 + 4000);  // w, x, the gradient of w
}

TEST(Captured, AHookBeforeANodeThatIsElsewhereSaysSo) {
  const auto replaced = [](const std::string& node) {
    std::string calls = kParts;
    calls.replace(calls.find("0, \"MulBackward0\", 0, [0, 0]"), 28, node);
    return message(calls);
  };
  const std::string elsewhere = ", which is not where the backward of the run had it";
  EXPECT_EQ(replaced("0, \"MulBackward0\", 0, [0, 0]"), "no error");
  EXPECT_EQ(replaced("0, \"MmBackward0\", 0, [0, 0]"),
            "step::hook_enter: hook 0 runs before MmBackward0" + elsewhere);
  EXPECT_EQ(replaced("0, \"MulBackward0\", 0, [0, 7]"),
            "step::hook_enter: hook 0 runs before MulBackward0" + elsewhere);
  EXPECT_EQ(replaced("0, \"MulBackward0\", 1, [0, 0]"),
            "step::hook_enter: hook 0 runs before MulBackward0" + elsewhere);
  EXPECT_EQ(replaced("0, \"MulBackward0\""), "step::hook_enter: takes 1 or 4 arguments");
}

// The tensor itself has gone; its graph has not.
TEST(Captured, ABackwardBeginsAtAnEdge) {
  std::string calls = kStep;
  calls.replace(calls.find("%one: f32[]"), std::string::npos, R"(%one: f32[] = aten::ones_like(%loss)
%edge = step::edge(%loss) drop %loss
step::backward([%edge], [%one], False, False, tensors[], True) drop %one, %edge
)");
  EXPECT_EQ(phases(calls).rows[2].numbers.requested_bytes.current, 4000 + 4000);  // w and its gradient
  EXPECT_EQ(message("%w: f32[4] = step::tensor()\n%e = step::edge(%w)\n"),
            "step::edge: the graph of autograd has no such edge");
}

// w times x keeps both for backward: on the host, where they take nothing of the device.
TEST(Captured, WhatIsSavedOnTheHostTakesNothingOfTheDevice) {
  std::string calls = kStep;
  calls.insert(calls.find("%y: f32[1000] = aten::mul"), "step::saved_on_host_enter(True)\n");
  calls.insert(calls.find("step::phase(\"backward\""), "step::saved_on_host_leave()\n");
  EXPECT_EQ(phases(kStep).rows[1].numbers.requested_bytes.current, 4000 + 4000 + 4);  // w, x, the loss
  EXPECT_EQ(phases(calls).rows[1].numbers.requested_bytes.current, 4000 + 4);         // w, the loss
}

// The mask is an argument that the region does not use: it waits with the others until the region is computed again.
TEST(Captured, ARegionHoldsWhatItWasGiven) {
  const auto held_after_forward = [](const std::string& keep) {
    const std::string calls =
        "%mask: f32[500] = step::tensor()\ncheckpoint {\n%h: f32[1000] = aten::sin(%w)\n" + keep +
        "}\n%z: f32[1000] = aten::sin(%h) drop %h, %mask\n%s: f32[] = aten::sum(%z) drop %z\n";
    const Phases found = phases(
        "%w: f32[1000] grad = step::tensor()\nstep::phase(\"forward\", 0, -1)\n" + calls +
        "step::phase(\"backward\", 0, -1)\nstep::backward([%s], [None], False, False, tensors[], True)\n");
    EXPECT_EQ(found.rows[2].numbers.requested_bytes.current, 4000 + 4000 + 4);  // w, its gradient, the loss
    return found.rows[1].numbers.requested_bytes.current;
  };
  EXPECT_EQ(held_after_forward("step::keep([%mask])\n"), held_after_forward("") + 2000);
}

// Of three results that are computed again the second one is kept, so that one call less is made and its bytes wait.
TEST(Captured, ARegionKeepsWhatItsPolicySays) {
  const auto rows = [](const std::string& head) {
    return phases("%w: f32[1000] grad = step::tensor()\nstep::phase(\"forward\", 0, -1)\n" + head +
                  "%a: f32[1000] = aten::sin(%w)\n%b: f32[1000] = aten::sin(%a) drop %a\n"
                  "%c: f32[1000] = aten::sin(%b) drop %b\n}\n%s: f32[] = aten::sum(%c) drop %c\n"
                  "step::phase(\"backward\", 0, -1)\nstep::backward([%s], [None], False, False, tensors[], "
                  "True)\n")
        .rows;
  };
  const auto nothing = rows("checkpoint {\n"), one = rows("checkpoint keep aten::sin(1) {\n");
  const auto none_known = rows("checkpoint keep mylib::f(0) {\n");
  EXPECT_EQ(one[1].numbers.requested_bytes.current, nothing[1].numbers.requested_bytes.current + 4000);
  EXPECT_EQ(one[2].numbers.requested_bytes.current, nothing[2].numbers.requested_bytes.current);
  EXPECT_EQ(none_known[1].numbers.requested_bytes.current, nothing[1].numbers.requested_bytes.current);
}

// What backward needs is written again, and autograd is not told.
TEST(Captured, VersionsAreKept) {
  std::string calls = kStep;
  calls.insert(calls.find("step::phase(\"backward\""), "_ = aten::zero_(%x)\n");
  calls.replace(calls.find(" drop %x"), 8, "");
  EXPECT_NE(message(calls).find("modified in place"), std::string::npos);
  calls.insert(calls.find("_ = aten::zero_"), "step::keep_versions_enter([%x])\n");
  calls.insert(calls.find("step::phase(\"backward\""), "step::keep_versions_leave()\n");
  EXPECT_EQ(message(calls), "no error");
}

// Freed, the block waits for the other stream until the next request.
TEST(Captured, ABlockThatAnotherStreamUsesWaitsForIt) {
  const std::string x = "%x: f32[1000] = step::tensor()\n", end = "step::phase(\"forward\", 0, -1)\n";
  const auto bytes = [&](const std::string& calls) { return phases(x + calls + end).rows[0].numbers; };
  EXPECT_EQ(bytes("%y: f32[] = step::tensor()\nstep::record_stream(%x, 1) drop %x\n").active_bytes.current,
            4096 + 512);
  EXPECT_EQ(bytes("%y: f32[] = step::tensor()\nstep::record_stream(%x, 1) drop %x\n").allocated_bytes.current,
            512);
  EXPECT_EQ(bytes("%y: f32[] = step::tensor()\nstep::record_stream(%x, 0) drop %x\n").active_bytes.current,
            512);
}

// Each stream has segments of its own.
TEST(Captured, CallsStandOnTheirStreams) {
  const Phases found =
      phases("%x: f32[1000] = step::tensor()\nstep::stream(1)\n%y: f32[1000] = step::tensor()\n");
  EXPECT_EQ(found.rows[0].numbers.segment.current, 2);
}

// An overload that writes is called after what it writes, and after that which it is of, if that has a name.
TEST(Captured, WhatIsWrittenHasManyNames) {
  const std::string given =
      "%a: f32[64,64] = step::tensor()\n%c: f32[64] = step::tensor()\n%i: i64[64] = step::tensor()\n"
      "%b: f32[64,64] = step::tensor()\n%s: f32[] = step::tensor()\n";
  StepOptions strict;
  strict.strict = true;
  for (const std::string call :
       {"_, _ = aten::max.dim_max(%a, 0, max=%c, max_values=%i)", "_ = aten::max.unary_out(%a, out=%s)",
        "_ = aten::maximum.out(%a, %a, out=%b)", "_ = aten::gelu_backward.grad_input(%a, %a, grad_input=%b)",
        "_, _ = aten::kthvalue.values(%a, 3, 0, values=%c, indices=%i)", "_ = aten::max.out(%a, %a, out=%b)",
        "_ = aten::div.out_mode(%a, %a, rounding_mode=\"floor\", out=%b)",
        "_ = aten::mean.dtype_out(%a, dtype=f32, out=%s)"})
    EXPECT_EQ(message(given + call + "\n", strict), "no error") << call;
}

TEST(Captured, TheProgramEmptiesTheCache) {
  const std::string x = "%x: f32[1000] = step::tensor()\n%y: f32[1000] = step::tensor() drop %x, %y\n";
  EXPECT_EQ(phases(x).rows[0].numbers.reserved_bytes.current, 2 << 20);
  EXPECT_EQ(phases(x + "step::empty_cache()\n").rows[0].numbers.reserved_bytes.current, 0);
}

// mm.out takes what mm takes, but for its result.
TEST(Captured, CallsWriteToTensorsThatTheyAreGiven) {
  const std::string given =
      "%a: f32[64,64] = step::tensor()\n%c: f32[64,64] = step::tensor()\nstep::phase(\"forward\", 0, -1)\n";
  StepOptions strict;
  strict.strict = true;
  const std::string call = given + "_ = aten::mm.out(%a, %a, out=%c)\n";
  EXPECT_EQ(message(call, strict), "no error");
  const auto taken = [](const std::string& calls) {
    return phases(calls).rows[1].numbers.requested_bytes.current;
  };
  EXPECT_EQ(taken(call) + 64L * 64 * 4, taken(given + "%d: f32[64,64] = aten::mm(%a, %a)\n"));
  EXPECT_EQ(message(given + "_ = aten::mm.out(%a, %a, out=None)\n", strict),
            "step.mp: operator aten::mm.out is not known (module ''): leave out --strict to go on with its "
            "recorded results");
  EXPECT_EQ(message(given + "_, _ = aten::topk.values_out(%a, 2, values=%c)\n", strict),
            "step.mp: operator aten::topk.values_out is not known (module ''): leave out --strict to go on "
            "with its recorded results");
}

// What a tensor looked into goes when it is set to look elsewhere; memory that is too small for it grows.
TEST(Captured, ATensorIsSetToAnothersMemory) {
  const std::string setup = "%a: f32[1000] = step::tensor()\n%b: f32[500] = step::tensor()\n";
  const auto current = [](const std::string& text) {
    return phases(text).rows.at(0).numbers.requested_bytes.current;
  };
  EXPECT_EQ(current(setup), 4000 + 2000);
  EXPECT_EQ(current(setup + "_ = aten::set_.source_Tensor(%a, %b)\n"), 2000);
  EXPECT_EQ(current(setup + "_ = aten::set_.source_Tensor(%a, %b) drop %b\n"), 2000);
  EXPECT_EQ(current(setup + "_ = aten::set_(%a)\n"), 2000);
  const std::string part = "_ = aten::set_.source_Tensor_storage_offset(%a, %b, 100, ";
  EXPECT_EQ(current(setup + part + "[400], [1])\n"), 2000);
  EXPECT_EQ(current(setup + part + "[30, 20], [20, 1])\n"), (100 + 600) * 4);  // for both
  EXPECT_EQ(message("%a: f32[4] = step::tensor()\n%b: bf16[4] = step::tensor()\n_ = "
                    "aten::set_.source_Tensor(%a, %b)\n"),
            "aten::set_.source_Tensor: f32[4] cannot look into the memory of bf16[4]");
}

TEST(Captured, AStoragesMemoryComesAndGoes) {
  const Phases found = phases(
      "%x: f32[1000] = step::tensor()\n%v: f32[500] = step::alias(%x)\nstep::resize_storage(%x, 0)\n"
      "step::phase(\"forward\", 0, -1)\nstep::resize_storage(%v, 4000)\n");
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(found.rows[0].numbers.requested_bytes.current, 0);
  EXPECT_EQ(found.rows[1].numbers.requested_bytes.current, 4000);  // for both that look into it
}

// Ranks' libraries take their memory outside the allocator.
TEST(Captured, CollectivesTakeWhatTheyMake) {
  const std::string calls =
      "%x: f32[1000] = step::tensor()\n_, _ = c10d::_allgather_base_(%x, %x, unknown(\"ScriptObject\"), "
      "False)\n"
      "%y: f32[2000] = _c10d_functional::all_gather_into_tensor(%x, 2, \"0\")\n"
      "%z: f32[2000] = _c10d_functional::wait_tensor(%y)\n";
  StepOptions strict;
  strict.strict = true;
  EXPECT_EQ(message(calls, strict), "no error");
  EXPECT_EQ(phases(calls).rows[0].numbers.requested_bytes.current, 4000 + 8000);
}

// What the run had and this one has not is a tensor as the program describes it, and is named.
TEST(Captured, WhatIsNotUnderstoodIsAsTheProgramHasIt) {
  const std::string w = "%w: f32[4] grad = step::tensor()\n";
  StepOptions strict;
  strict.strict = true;
  const std::string rest =
      ", unlike in the run that was captured: leave out --strict to go on with a tensor of its own";
  for (const auto& [call, why] :
       {std::pair(w + "%g: f32[4] = step::gradient(%w)\n", "step.mp: step::gradient: it has no gradient"),
        std::pair(w + "%a: f32[5] = step::alias(%w)\n",
                  "step.mp: step::alias: its memory has other bytes")}) {
    EXPECT_EQ(message(call), "no error");
    EXPECT_EQ(message(call, strict), why + rest);
  }
}

// What the recorder could not write down stands in the program as a warning.
TEST(Captured, StrictRefusesWhatIsMissing) {
  const std::string calls =
      "warning \"hooks on gradients run in backward; what they call is not in the program\"\n" + kStep;
  EXPECT_EQ(message(calls), "no error");
  StepOptions strict;
  strict.strict = true;
  EXPECT_EQ(message(calls, strict),
            "step.mp: hooks on gradients run in backward; what they call is not in the program: leave out "
            "--strict to go on");
}

}  // namespace
}  // namespace metaprof
