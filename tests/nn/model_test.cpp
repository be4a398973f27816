// A model that is written in C++: what its program says, and that it runs as any other.

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/platform/platform.h"
#include "opcount/counts.h"
#include "profiler/modules/parameters.h"
#include "program/nn/layers.h"
#include "program/nn/recorder.h"
#include "program/text/text.h"
#include "step/step.h"

namespace metaprof {
namespace {

// The model of docs/how_to/nn.md, in twenty lines.
struct Mlp : nn::Module<Mlp> {
  explicit Mlp(const nn::Place& place)
      : Module(place, "Mlp"),
        fc1(child("fc1"), 784, 512),
        drop(child("drop"), 0.1),
        fc2(child("fc2"), 512, 10) {}
  nn::Tensor forward(nn::Tensor x) {
    x = nn::relu(fc1(x));
    return fc2(drop(x));
  }
  nn::Linear fc1;
  nn::Dropout drop;
  nn::Linear fc2;
};

Program mlp_program(int64_t batch) {
  nn::Recorder recorder("mlp");
  const nn::Tensor x = recorder.input("x", DType::f32, {batch, 784});
  const nn::Tensor labels = recorder.input("labels", DType::i64, {batch});
  Mlp model(recorder.root());
  const nn::Tensor logits = model(x);
  return recorder.finish(nn::cross_entropy(logits, labels));
}

Trace one_step(const Program& program) {
  StepOptions options;
  options.steps = 1;
  return run_steps(program, platform_named("h200"), options);
}

TEST(ModelInCpp, IsAProgramWithNamesAndDrops) {
  // x = relu(fc1(x)): the result of fc1 goes with relu, which has taken it; that of relu when the name x and the
  // arguments of fc2 are gone, as in Python.
  EXPECT_EQ(to_text(mlp_program(64)), R"(metaprof program 1
name "mlp"
module "" Mlp
module fc1 torch.nn.modules.linear.Linear
module drop torch.nn.modules.dropout.Dropout
module fc2 torch.nn.modules.linear.Linear
parameter fc1.weight = %0: f32[512,784] grad
parameter fc1.bias = %1: f32[512] grad
parameter fc2.weight = %2: f32[10,512] grad
parameter fc2.bias = %3: f32[10] grad
input x = %4: f32[64,784]
input labels = %5: i64[64]
scope m1 = ""
scope m2 = fc1 in m1
%6: f32[64,512] = aten::linear(input=%4, weight=%0, bias=%1) in m2
%7: f32[64,512] = aten::relu(self=%6) in m1 drop %6
scope m3 = drop in m1
%8: f32[64,512] = aten::dropout(input=%7, p=0.1, train=True) in m3
scope m4 = fc2 in m1
%9: f32[64,10] = aten::linear(input=%8, weight=%2, bias=%3) in m4 drop %8, %7
%10: f32[] = aten::cross_entropy_loss(self=%9, target=%5)
loss = %10
)");
}

TEST(ModelInCpp, RunsAsAnyOther) {
  const Program program = mlp_program(64);
  const Trace trace = one_step(program);
  // (784 + 1) · 512 + (512 + 1) · 10
  EXPECT_EQ(parameters_of(trace).all.count, 407050);
  // 2 · 64 · (784 · 512 + 512 · 10) forward; backward twice that, without the gradient of the input.
  const ByPhase<Flops> flops = count(trace, {}).total.counted;
  EXPECT_EQ(flops.forward.count, 2 * 64 * (784 * 512 + 512 * 10));
  EXPECT_EQ(flops.backward.count, 2 * 64 * (784 * 512 + 2 * 512 * 10));
}

// A module that is called twice, and a weight with two names.
struct Twice : nn::Module<Twice> {
  explicit Twice(const nn::Place& place)
      : Module(place, "Twice"),
        embed(child("embed"), 100, 8),
        layers(child("layers"), 2, [](const nn::Place& at, int64_t) { return nn::Linear(at, 8, 8, false); }),
        head(child("head"), embed.weight, false) {}
  nn::Tensor forward(nn::Tensor ids) {
    nn::Tensor hidden = embed(ids);
    for (int time = 0; time < 2; ++time)
      for (nn::Linear& layer : layers) hidden = layer(hidden);
    return head(hidden);
  }
  nn::Embedding embed;
  nn::ModuleList<nn::Linear> layers;
  nn::Linear head;
};

TEST(ModelInCpp, CallsOfOneModuleAreToldApartAndTiedWeightsCountOnce) {
  nn::Recorder recorder("twice");
  const nn::Tensor ids = recorder.input("ids", DType::i64, {4, 5});
  const nn::Tensor labels = recorder.input("labels", DType::i64, {20});
  Twice model(recorder.root());
  const nn::Tensor logits = model(ids);
  const Program program = recorder.finish(nn::cross_entropy(nn::view(logits, {20, 100}), labels));
  std::vector<std::string> keys;
  for (const auto& stack : program.module_stacks) keys.push_back(stack.back().key);
  EXPECT_EQ(keys, (std::vector<std::string>{"", "embed", "layers.0", "layers.1", "layers.0@1", "layers.1@1",
                                            "head"}));
  EXPECT_EQ(program.tied_names(), (std::vector<std::vector<std::string>>{{"embed.weight", "head.weight"}}));
  const Trace trace = one_step(program);
  EXPECT_EQ(parameters_of(trace).all.count, 100 * 8 + 2 * 8 * 8);
}

std::string message_of(void (*make)(nn::Recorder&)) {
  nn::Recorder recorder("broken");
  try {
    make(recorder);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ModelInCpp, MistakesAreErrors) {
  EXPECT_EQ(message_of([](nn::Recorder& recorder) {
              nn::Linear layer(recorder.root(), 3, 4);
              (void)layer(recorder.input("x", DType::f32, {2, 5}));
            }).substr(0, 12),
            "aten::addmm:");
  EXPECT_EQ(message_of(
                [](nn::Recorder& recorder) { (void)nn::call("warp", recorder.input("x", DType::f32, {2})); }),
            "broken: there is no operator 'warp'");
  EXPECT_EQ(message_of([](nn::Recorder& recorder) {
              (void)nn::call("relu", recorder.input("x", DType::f32, {2}), 1, 2);
            }),
            "broken: relu takes 1 arguments, got 3");
  EXPECT_EQ(message_of([](nn::Recorder&) { (void)nn::call("relu", nn::Tensor()); }),
            "relu: no argument is a tensor");
  EXPECT_EQ(message_of([](nn::Recorder& recorder) {
              nn::Dropout first(recorder.root(), 0.1), second(recorder.root(), 0.1);
            }),
            "broken: two modules have the path ''");
}

}  // namespace
}  // namespace metaprof
