// A model that is written in C++, and what a training step of it costs. Built against an installed metaprof:
//
//   cmake -S . -B build -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build && build/mlp

#include <iostream>

#include "estimate/estimate.h"
#include "program/nn/layers.h"
#include "program/nn/recorder.h"
#include "reports/profile/profile_report.h"

using namespace metaprof;

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

int main() {
  nn::Recorder recorder("mlp");
  const nn::Tensor x = recorder.input("x", DType::f32, {64, 784});
  const nn::Tensor labels = recorder.input("labels", DType::i64, {64});
  Mlp model(recorder.root());
  const nn::Tensor logits = model(x);
  RunOptions options;
  options.device = "rtx4090";
  const Estimate result = estimate(model_of(recorder.finish(nn::cross_entropy(logits, labels))), options);
  std::cout << profile_text(result.report, {});
}
