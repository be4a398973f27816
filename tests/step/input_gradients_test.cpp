// Steps with gradients of inputs, and with hooks on saved tensors. What the second step takes (+) and gives back (−), in
// bytes and in order, is what PyTorch 2.11 asked its allocator for on an emulated H200. The last thing that a forward gives
// back is the loss of the step before.

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/platform/platform.h"
#include "program/text/text.h"
#include "step/step.h"

namespace metaprof {
namespace {

// sum(linear(tanh(linear(x, w1, b1)), w2)) of 128 rows, 32 → 64 → 16.
constexpr const char* kNetwork = R"(metaprof program 1
parameter w1 = %w1: f32[64,32] grad
parameter b1 = %b1: f32[64] grad
parameter w2 = %w2: f32[16,64] grad
input x = %x: f32[128,32]
input rows = %rows: i64[4]
%a: f32[128,64] = aten::linear(%x, %w1, %b1)
%h: f32[128,64] = aten::tanh(%a) drop %a
%y: f32[128,16] = aten::linear(%h, %w2)
%loss: f32[] = aten::sum(%y) drop %y, %h
loss = %loss
)";

Trace run(const StepOptions& options) {
  return run_steps(parse_program(kNetwork, "network"), platform_named("h200"), options);
}

StepOptions plain() {
  StepOptions options;
  options.optimizer = "sgd";
  options.steps = 2;
  return options;
}

StepOptions with_gradient() {
  StepOptions options = plain();
  options.grad = "x";
  return options;
}

// "+4 -8" of one phase of the second step.
std::string requests(const Trace& trace, Phase phase) {
  std::string text;
  bool inside = false;
  uint32_t step = 0;
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase) {
      step = event.id;
      inside = step == 1 && static_cast<Phase>(event.detail) == phase;
    }
    if (!inside || (event.kind != Event::Kind::alloc && event.kind != Event::Kind::free)) continue;
    const StorageRecord& storage = trace.storages[event.id];
    if (!storage.device.is_cuda()) continue;
    text += text.empty() ? "" : " ";
    text += (event.kind == Event::Kind::alloc ? "+" : "-") + std::to_string(storage.bytes.count);
  }
  return text;
}

int64_t flops(const Trace& trace) {
  int64_t total = 0;
  for (const CallRecord& call : trace.calls) total += call.counted.count;
  return total;
}

std::string refusal(const StepOptions& options) {
  try {
    run(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "it is run";
}

// grads = torch.autograd.grad(loss, [x])
TEST(InputGradients, OfOneInput) {
  const Trace trace = run(with_gradient());
  EXPECT_EQ(requests(trace, Phase::forward), "+32768 +32768 -32768 +8192 +4 -8192 -4");
  EXPECT_EQ(requests(trace, Phase::backward),
            "+4 +32768 +8192 -8192 +32768 -32768 -32768 +16384 -32768 -4 -16384");
  EXPECT_EQ(requests(trace, Phase::optimizer), "") << "no parameter has a gradient";
}

// penalty = sum(g.pow(2).sum() for g in grads); (loss + penalty).backward()
TEST(InputGradients, Penalised) {
  StepOptions options = with_gradient();
  options.create_graph = true;
  EXPECT_EQ(
      requests(run(options), Phase::backward),
      "+4 +32768 +8192 -8192 +32768 +16384 -16384 +16384 +4 -16384 +4 -4 -4 +4 +4 +16384 +16384 +16384 "
      "-16384 -16384 +4096 +8192 -8192 +32768 +8192 -8192 +8192 +32768 -16384 -32768 +32768 +32768 +32768 "
      "+32768 -32768 -32768 -32768 -32768 -32768 +32768 -32768 -32768 +16384 +8192 +256 -32768 +8192 -8192 "
      "-8192 -16384 +4096 +8192 -8192 -32768 -4 +4096 -4096 -4096 -4 -4");
}

// products = torch.autograd.grad(grads, [x], [torch.ones_like(g) for g in grads])
TEST(InputGradients, MultipliedByTheHessian) {
  StepOptions options = with_gradient();
  options.hvp = true;
  EXPECT_EQ(requests(run(options), Phase::backward),
            "+4 +32768 +8192 -8192 +32768 +16384 -4 -16384 +16384 -16384 +32768 -32768 +32768 +32768 +32768 "
            "-32768 -32768 -32768 -32768 +32768 -32768 +16384 -32768 -16384");
}

// Of backward's products only those that lead to x: 2·128·16·64 and 2·128·64·32; those of the weights, of the same
// sizes, are left out, and only tests compute them.
TEST(InputGradients, GradientsOfWeightsAreNotComputed) {
  StepOptions options = with_gradient();
  options.steps = 1;
  constexpr int64_t kForward = int64_t{2} * 128 * 64 * (32 + 16);
  EXPECT_EQ(flops(run(options)), 2 * kForward);
  options.trims_gradients = false;
  EXPECT_EQ(flops(run(options)), 3 * kForward);
}

TEST(InputGradients, WhatCannotBeAskedFor) {
  StepOptions options = with_gradient();
  options.grad = "w1";
  EXPECT_EQ(refusal(options), "--grad: 'w1' is no floating input of network; they are: x");
  options.grad = "rows";
  EXPECT_EQ(refusal(options), "--grad: 'rows' is no floating input of network; they are: x");
  options = with_gradient();
  options.mode = Mode::eval;
  EXPECT_EQ(refusal(options), "--grad: --mode eval has no backward");
  options = with_gradient();
  options.precision = Precision::amp_fp16;
  EXPECT_NE(refusal(options).find("would have to be unscaled by hand"), std::string::npos);
  options = with_gradient();
  options.create_graph = options.hvp = true;
  EXPECT_NE(refusal(options).find("--hvp and --create-graph"), std::string::npos);
  options = plain();
  options.create_graph = true;
  EXPECT_EQ(refusal(options), "--create-graph: it needs --grad with the names of inputs");
  options = plain();
  options.hvp = true;
  EXPECT_EQ(refusal(options), "--hvp: it needs --grad with the names of inputs");
}

// with torch.autograd.graph.save_on_cpu(): weights that backward reads are copied, too.
TEST(SavedTensorHooks, Offload) {
  StepOptions options = plain();
  options.hooks = SavedHooks::offload;
  const Trace trace = run(options);
  EXPECT_EQ(requests(trace, Phase::forward), "+32768 +32768 -32768 +8192 +4 -8192 -32768 -4");
  EXPECT_EQ(
      requests(trace, Phase::backward),
      "+4 +4096 +32768 +4096 +8192 -8192 +32768 +8192 -8192 -32768 -4096 +32768 +32768 -32768 -32768 +16384 "
      "+8192 -16384 +256 -32768 -4");
}

// with saved_tensors_hooks(lambda t: (t.dtype, t.to(bfloat16)), lambda p: p[1].to(p[0]))
TEST(SavedTensorHooks, PackInSixteenBits) {
  StepOptions options = plain();
  options.hooks = SavedHooks::pack_bf16;
  const Trace trace = run(options);
  EXPECT_EQ(requests(trace, Phase::forward),
            "+8192 +32768 +32768 +16384 -32768 +2048 +16384 +8192 +4 -8192 -32768 -4");
  EXPECT_EQ(
      requests(trace, Phase::backward),
      "+4 +4096 +32768 +4096 +8192 -8192 +32768 +8192 -8192 -32768 -4096 -2048 -16384 +32768 +32768 -32768 "
      "-32768 -16384 +16384 +8192 -16384 +256 -32768 -8192 -4");
}

}  // namespace
}  // namespace metaprof
