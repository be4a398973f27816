#pragma once
// What the models of torchvision share.

#include "program/config/families.h"
#include "program/nn/layers.h"

namespace metaprof::vision {

using nn::Place;
using nn::Tensor;

inline constexpr int64_t kImage = 224, kClasses = 1000;

/// torch.nn.ReLU(inplace=True)
struct Relu : nn::Module<Relu> {
  explicit Relu(const Place& place) : Module(place, "torch.nn.modules.activation.ReLU") {}
  Tensor forward(Tensor x) const { return nn::call("relu_", std::move(x)); }
};

/// Square windows.
struct MaxPool : nn::Module<MaxPool> {
  MaxPool(const Place& place, int64_t kernel, int64_t stride, int64_t padding = 0)
      : Module(place, "torch.nn.modules.pooling.MaxPool2d"),
        kernel(kernel),
        stride(stride),
        padding(padding) {}
  Tensor forward(Tensor x) const {
    return nn::call("max_pool2d", std::move(x), Sizes{kernel, kernel}, Sizes{stride, stride},
                    Sizes{padding, padding});
  }
  int64_t kernel, stride, padding;
};

struct AveragePool : nn::Module<AveragePool> {
  /// `size`: of the result, in both directions.
  AveragePool(const Place& place, int64_t size)
      : Module(place, "torch.nn.modules.pooling.AdaptiveAvgPool2d"), size(size) {}
  Tensor forward(Tensor x) const { return nn::call("adaptive_avg_pool2d", std::move(x), Sizes{size, size}); }
  int64_t size;
};

/// torch.nn.Sequential of modules that each take what the one before gives.
struct Sequence : nn::Module<Sequence> {
  explicit Sequence(const Place& place) : Module(place, "torch.nn.modules.container.Sequential") {}
  template <class Part, class... Arguments>
  void add(Arguments&&... arguments) {
    parts.push_back(
        configs::part<Part>(child(std::to_string(parts.size())), std::forward<Arguments>(arguments)...));
  }
  // Python's `for module in self: input = module(input)` lets go of what went in when the result is there.
  Tensor forward(Tensor x) const {
    Tensor input = x;
    for (const configs::AnyPart& part : parts) input = part(input);
    return input;
  }
  std::vector<configs::AnyPart> parts;
};

/// Images and labels in, the loss out. Model: pixels → logits.
template <class Model, class... Arguments>
Program classifier(const std::string& name, const InputSizes& sizes, const Arguments&... arguments) {
  configs::ModelRecorder recorder(name, sizes);
  const Tensor pixels =
      recorder.input("pixel_values", DType::f32, {sizes.batch.value_or(1), 3, kImage, kImage});
  const Tensor labels = recorder.input("labels", DType::i64, {pixels.size(0)});
  Model made(recorder.root(), arguments...);
  const Tensor logits = made(pixels);
  return recorder.finish(nn::cross_entropy(logits, labels));
}

}  // namespace metaprof::vision
