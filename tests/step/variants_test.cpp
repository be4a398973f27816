// Captured programs as they would be with other options: what memory the changed step takes, and what is refused.

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/allocator/caching_allocator.h"
#include "meta/platform/platform.h"
#include "profiler/allocator/phases.h"
#include "program/text/text.h"
#include "step/step.h"

namespace metaprof {
namespace {

// loss = sum(sin(exp(w * x))), w and x of 1000 floats: 4000 bytes each. Plain SGD, written in place.
const std::string kSetup = R"(metaprof program 1
captured torch 2.11.0
scope m1 = net
step::phase("setup", 0, -1)
%w: f32[1000] grad = step::tensor()
step::name("parameter", "w", %w)
)";

std::string step(int number) {
  std::string text = R"(step::phase("forward", N, -1)
step::grad_mode(True)
%xN: f32[1000] = step::tensor()
step::name("input", "", %xN)
%yN: f32[1000] = aten::mul.Tensor(%w, %xN) in m1 drop %xN
%zN: f32[1000] = aten::exp(%yN) in m1 drop %yN
%uN: f32[1000] = aten::sin(%zN) in m1 drop %zN
%lN: f32[] = aten::sum(%uN) dropN
step::phase("backward", N, -1)
step::backward([%lN], [None], False, False, tensors[], True)
step::phase("optimizer", N, -1)
step::optimizer_enter()
step::grad_mode(False)
%gN: f32[1000] = step::gradient(%w)
%tN: f32[1000] = aten::mul.Tensor(%gN, 0.1)
_ = aten::sub_.Tensor(%w, %tN) drop %tN
step::optimizer_leave(0, "step", "torch.optim.sgd.SGD", [%w])
step::phase("zero_grad", N, -1)
step::set_gradient(%w, None) drop %gN
)";
  const std::string before =
      number > 0 ? "drop %u" + std::to_string(number) + ", %l" + std::to_string(number - 1) : "drop %u0";
  text.replace(text.find("dropN"), 5, before);
  for (size_t at = text.find('N'); at != text.npos; at = text.find('N', at + 1))
    if (text.compare(at, 3, "Non") != 0) text.replace(at, 1, std::to_string(number));
  return text;
}

const std::string kTwoSteps = kSetup + step(0) + step(1);

Trace run(const std::string& text, const StepOptions& options) {
  return run_steps(parse_program(text, "step.mp"), platform_named("h200"), options);
}

Phases phases(const StepOptions& options, const std::string& text = kTwoSteps) {
  const Trace trace = run(text, options);
  CachingAllocator allocator;
  return replay(trace, kFirstGpu, allocator);
}

int64_t current(const Phases& found, size_t row) {
  return found.rows.at(row).numbers.requested_bytes.current;
}
int64_t peak(const Phases& found, size_t row) { return found.rows.at(row).numbers.requested_bytes.peak; }

std::string message(const StepOptions& options, const std::string& text = kTwoSteps) {
  try {
    run(text, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Variants, AsItWasCaptured) {
  const Phases found = phases({});
  ASSERT_EQ(found.rows.size(), 9u);
  // exp keeps its result, sin what it was given, which is the same; mul keeps x: w, x, z and the loss.
  EXPECT_EQ(current(found, 1), 4000 + 4000 + 4000 + 4);
  EXPECT_EQ(current(found, 3), 4000 + 4000 + 4);      // w, its gradient, the loss
  EXPECT_EQ(peak(found, 3), 4000 + 4000 + 4 + 4000);  // … and 0.1 of the gradient
}

TEST(Variants, AnotherOptimizerKeepsItsOwnState) {
  StepOptions options;
  options.optimizer = "adamw";
  options.given = {"optimizer"};
  const Phases found = phases(options);
  ASSERT_EQ(found.rows.size(), 9u);
  // Two moments of w; the step counter is on the host.
  EXPECT_EQ(current(found, 3), 4000 + 4000 + 4 + 2 * 4000);
  EXPECT_EQ(current(found, 4), 4000 + 4 + 2 * 4000);
  options = {};
  options.optimizer = "sgd-momentum";
  EXPECT_EQ(current(phases(options), 3), 4000 + 4000 + 4 + 4000);
}

TEST(Variants, WhatTheProgramTakesOfItsOwnOptimizerIsNamed) {
  StepOptions options;
  options.optimizer = "sgd";
  std::string text = kTwoSteps;
  text.insert(text.find("step::set_gradient"), "%k: f32[1000] = aten::neg(%w)\n");
  EXPECT_EQ(message(options, text), "no error");
  const std::string leave = "step::optimizer_leave(0, \"step\", \"torch.optim.sgd.SGD\", [%w])\n";
  text = kTwoSteps;
  text.replace(text.find(" drop %t0"), 9, "");
  text.insert(text.find(leave) + leave.size(), "%k: f32[1000] = aten::neg(%t0)\n");
  EXPECT_EQ(message(options, text),
            "--optimizer: step.mp: aten::neg takes what the program's own optimizer has made");
  text = kTwoSteps;
  text.replace(text.find("[%w])\nstep::phase"), 4, "None");
  EXPECT_EQ(message(options, text),
            "--optimizer: step.mp: the parameters of the program's torch.optim.sgd.SGD are no plain tensors");
  EXPECT_EQ(message(options, kSetup), "--optimizer: step.mp takes no step of an optimizer of torch.optim");
  options.optimizer_impl = OptimizerImpl::fused;
  text = kTwoSteps;
  text.insert(text.find("step::optimizer_enter"),
              "%s: f32[] = step::tensor()\n%f: f32[] = step::tensor()\n%n: i32[] = "
              "step::tensor()\naten::_amp_update_scale_(%s, %n, %f, 2.0, 0.5, 2000)\n");
  EXPECT_EQ(message(options, text), "no error");
  text.insert(text.find("step::optimizer_enter"),
              "aten::_amp_foreach_non_finite_check_and_unscale_([%w], %f, %s)\n");
  EXPECT_EQ(message(options, text),
            "--optimizer-impl fused: step.mp scales gradients, which a fused step unscales itself and others "
            "do not");
}

TEST(Variants, FewerSteps) {
  StepOptions options;
  options.steps = 1;
  EXPECT_EQ(phases(options).rows.size(), 5u);
  options.steps = 2;
  EXPECT_EQ(phases(options).rows.size(), 9u);
  options.steps = 4;
  EXPECT_EQ(message(options), "--steps 4: step.mp was captured from a run of 2 steps");
}

TEST(Variants, SixteenBits) {
  StepOptions options;
  options.precision = Precision::bf16;
  const Phases found = phases(options);
  EXPECT_EQ(current(found, 0), 2000);                    // w
  EXPECT_EQ(current(found, 1), 2000 + 2000 + 2000 + 2);  // w, x, z, the loss
  EXPECT_EQ(current(found, 3), 2000 + 2000 + 2);         // w, its gradient, the loss
  options.precision = Precision::amp_fp16;
  EXPECT_EQ(message(options), "--precision amp-fp16: step.mp would have to scale gradients");
  options.precision = Precision::bf16;
  EXPECT_EQ(message(options, "metaprof program 1\ncaptured torch 2.11.0\n"),
            "--precision: step.mp has no parameter of floating numbers");
}

// h.to(torch.float32) of 32 bits is h, and so are its later uses; in 16 bits what is outside the module uses h itself.
// x.to(y.dtype) of 32 bits is x, which goes with the module's call where the result goes on.
TEST(Variants, ConversionsThatChangedNothing) {
  const std::string text = R"(metaprof program 1
captured torch 2.11.0
scope m1 = net
scope m2 = net.norm in m1
step::phase("setup", 0, -1)
%w: f32[1000] grad = step::tensor()
step::name("parameter", "w", %w)
step::phase("forward", 0, -1)
step::grad_mode(False)
%h: f32[1000] = aten::mul.Tensor(%w, %w) in m1
%f: f32[1000] = aten::to.dtype(%h, f32) in m2 dtype_named
%e: f32[1000] = aten::exp(%f) in m2
%b: f32[1000] = aten::to.dtype(%e, f32) in m2
%y: f32[1000] = aten::add.Tensor(%f, %b) in m1 drop %f, %h, %b, %e
)";
  StepOptions options;
  EXPECT_EQ(current(phases(options, text), 1), 4000 + 4000);  // w and y
  options.precision = Precision::bf16;
  const Phases found = phases(options, text);
  EXPECT_EQ(current(found, 1), 2000 + 2000);  // y = h + b in 16 bits
  // w, h, f and e in 32 bits, b; at the addition f and e are gone.
  EXPECT_EQ(found.rows[1].numbers.requested_bytes.peak, 2000 + 2000 + 4000 + 4000 + 2000);
}

TEST(Variants, AutocastOfEachForward) {
  std::string text = kTwoSteps;
  for (size_t at = text.find("[1000]"); at != text.npos; at = text.find("[1000]", at))
    text.replace(at, 6, "[20,20]");
  for (size_t at = text.find("aten::mul.Tensor(%w, %x"); at != text.npos;
       at = text.find("aten::mul.Tensor(%w, %x", at))
    text.replace(at, 16, "aten::mm");
  const int64_t before = current(phases({}, text), 1);
  StepOptions options;
  options.precision = Precision::amp_bf16;
  // For the gradient of w mm keeps a copy of x in 16 bits instead of x (20 * 20 * 4 bytes). exp's result has 32.
  EXPECT_EQ(current(phases(options, text), 1), before - 1600 + 800);
}

// A dtype that a call took from a tensor is that tensor's: within autocast, and without it where the program had it.
TEST(Variants, DtypesFollowTheTensorsTheyWereTakenFrom) {
  const std::string text = R"(metaprof program 1
captured torch 2.11.0
step::phase("setup", 0, -1)
%w: f32[20,20] grad = step::tensor()
step::name("parameter", "w", %w)
step::phase("forward", 0, -1)
step::grad_mode(False)
step::autocast_enter(ON, bf16, True)
%h: DT[20,20] = aten::mm(%w, %w)
%z: DT[20,20] = aten::zeros([20, 20], dtype=DT, device=device(model)) dtype_of %h drop %h
step::autocast_leave()
)";
  const auto captured = [&](const char* on, const char* dtype) {
    std::string made = text;
    made.replace(made.find("ON"), 2, on);
    for (size_t at = made.find("DT"); at != made.npos; at = made.find("DT")) made.replace(at, 2, dtype);
    return made;
  };
  StepOptions options;
  options.precision = Precision::amp_bf16;
  constexpr int64_t kCublas = 32 << 20;  // its workspace on an H200
  EXPECT_EQ(current(phases(options, captured("False", "f32")), 1), kCublas + 1600 + 800);  // w, z
  options.precision = Precision::fp32;
  options.given = {"precision"};
  EXPECT_EQ(current(phases(options, captured("True", "bf16")), 1), kCublas + 1600 + 1600);
}

// cuDNN takes weights in one buffer, but none of bf16: a module that is moved keeps those as they are, and each call makes
// a buffer of them.
TEST(Variants, RecurrentWeightsLieTogetherWhereTheirDtypeAllowsIt) {
  const std::string flatten =
      "%f: DT[144] = aten::_cudnn_rnn_flatten_weight([%a, %b, %c, %d], 4, 3, 2, 4, 0, 1, False, False) drop "
      "%f\n";
  const std::string text = R"(metaprof program 1
captured torch 2.11.0
step::phase("setup", 0, -1)
step::grad_mode(False)
%a: DT[16,3] = step::tensor()
%b: DT[16,4] = step::tensor()
%c: DT[16] = step::tensor()
%d: DT[16] on cpu = step::tensor()
%e: DT[16] = aten::to.dtype_layout(%d, dtype=DT, layout=0, device=device(model))
step::set_data(%d, %e) drop %e
FLATTENstep::name("parameter", "a", %a)
step::name("parameter", "b", %b)
step::name("parameter", "c", %c)
step::name("parameter", "d", %d)
step::phase("forward", 0, -1)
%x: DT[5,2,3] = step::tensor()
step::name("input", "x", %x)
%h: DT[1,2,4] = aten::zeros([1, 2, 4], dtype=DT, device=device(model))
%y: DT[5,2,4], _, _ = aten::lstm.input(%x, [%h, %h], [%a, %b, %c, %d], True, 1, 0.0, False, False, False) drop %h
)";
  const auto captured = [&](const char* dtype, bool flattened) {
    std::string made = text;
    made.replace(made.find("FLATTEN"), 7, flattened ? flatten : "");
    for (size_t at = made.find("DT"); at != made.npos; at = made.find("DT")) made.replace(at, 2, dtype);
    return made;
  };
  const std::string wide = captured("f32", true), narrow = captured("bf16", false);
  StepOptions options;
  const Phases in_f32 = phases(options, wide), in_bf16 = phases(options, narrow);
  EXPECT_EQ(current(in_f32, 0), 144 * 4);                           // the buffer
  EXPECT_EQ(current(in_bf16, 0), (16 * 3 + 16 * 4 + 16 + 16) * 2);  // each by itself
  options.precision = Precision::bf16;
  for (size_t row : {0u, 1u}) {
    EXPECT_EQ(current(phases(options, wide), row), current(in_bf16, row));
    EXPECT_EQ(peak(phases(options, wide), row), peak(in_bf16, row));
  }
  options.precision = Precision::fp32;
  options.given = {"precision"};
  for (size_t row : {0u, 1u}) {
    EXPECT_EQ(current(phases(options, narrow), row), current(in_f32, row));
    EXPECT_EQ(peak(phases(options, narrow), row), peak(in_f32, row));
  }
}

TEST(Variants, ModulesThatAreComputedAgain) {
  StepOptions options;
  options.checkpoint = "net";
  const Phases found = phases(options);
  // w, x for computing again, the result, which sum does not keep, and the loss.
  EXPECT_EQ(current(found, 1), 4000 + 4000 + 4);
  EXPECT_EQ(current(found, 3), 4000 + 4000 + 4);
  // What the module was given and no call in it takes is held, too.
  std::string given = kTwoSteps;
  given.insert(given.find("%x0: "), "%m: f32[500] = step::tensor()\n");
  given.insert(given.find("%u0: "), "step::keep([%m]) in m1 drop %m\n");
  EXPECT_EQ(current(phases(options, given), 1), 4000 + 4000 + 4 + 2000);
  options.checkpoint = "other";
  EXPECT_EQ(message(options), "--checkpoint: no module of  matches 'other'");
  options.checkpoint = "net";
  std::string text = kTwoSteps;
  text.insert(text.find("%u0: "), "step::pause()\n");
  EXPECT_EQ(message(options, text),
            "--checkpoint: step.mp: step::pause is called within a module that is to be computed again");
}

TEST(Variants, MicroBatches) {
  StepOptions options;
  options.accumulate = 3;
  const Phases found = phases(options);
  ASSERT_EQ(found.rows.size(), 1u + 2 * (3 * 2 + 2));
  EXPECT_EQ(current(found, 1), 4000 + 4000 + 4000 + 4);  // as without
  EXPECT_EQ(current(found, 3), 4000 + 4000 + 4000 + 4000 +
                                   4);  // the second has the gradient beside it; the loss is the second one
  EXPECT_EQ(current(found, 6), 4000 + 4000 + 4);
  EXPECT_EQ(current(found, 16), 4000 + 4);
  std::string text = kTwoSteps;
  text.replace(text.find("\"forward\", 0, -1"), 16, "\"forward\", 0, 0");
  EXPECT_EQ(message(options, text), "--accumulate: step.mp accumulates gradients already");
  EXPECT_EQ(message(options, kSetup), "--accumulate: step.mp has no forward");
}

TEST(Variants, CallsThatSayTooLittleAreNamed) {
  StepOptions options;
  options.precision = Precision::bf16;
  EXPECT_EQ(message(options, kSetup + "step::name(\"parameter\", \"v\")\n"),
            "step.mp: step::name takes what a tensor is for, its name and the tensor");
  EXPECT_EQ(message(options, kSetup + "step::phase(\"forward\")\n"),
            "step.mp: step::phase takes a phase, a step and a micro-batch");
}

// What an earlier step made and kept is its last repetition's.
TEST(Variants, MicroBatchesUseWhatAnEarlierStepMade) {
  std::string text = kTwoSteps;
  text.insert(text.find("%z0: "), "%k: f32[1000] = aten::sin(%w)\n");
  text.insert(text.find("%z1: "), "%v: f32[1000] = aten::cos(%k) drop %v\n");
  StepOptions options;
  options.accumulate = 2;
  EXPECT_EQ(message(options, text), "no error");
}

// A call that drops what it makes drops it in each repetition.
TEST(Variants, MicroBatchesOfAValueThatGoesAtOnce) {
  std::string text = kTwoSteps;
  text.insert(text.find("%z0: "), "%v: f32[1000] = aten::sin(%y0) drop %v\n");
  StepOptions options;
  options.accumulate = 2;
  EXPECT_EQ(current(phases(options, text), 1), current(phases({}, text), 1));
}

}  // namespace
}  // namespace metaprof
