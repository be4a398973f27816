#include "program/nn/layers.h"

namespace metaprof::nn {

Linear::Linear(const Place& place, int64_t in, int64_t out, bool has_bias)
    : Module(place, "torch.nn.modules.linear.Linear"), weight(parameter("weight", {out, in})) {
  if (has_bias) bias = parameter("bias", {out});
}

Linear::Linear(const Place& place, const Tensor& tied_weight, bool has_bias)
    : Module(place, "torch.nn.modules.linear.Linear"), weight(tied("weight", tied_weight)) {
  if (has_bias) bias = parameter("bias", {weight.size(0)});
}

Linear::Linear(const Place& place, const Tensor& tied_weight, const Tensor& tied_bias)
    : Module(place, "torch.nn.modules.linear.Linear"),
      weight(tied("weight", tied_weight)),
      bias(tied("bias", tied_bias)) {}

Embedding::Embedding(const Place& place, int64_t rows, int64_t width, int64_t padding)
    : Module(place, "torch.nn.modules.sparse.Embedding"),
      weight(parameter("weight", {rows, width})),
      padding(padding) {}

Embedding::Embedding(const Place& place, const Tensor& tied_weight, int64_t padding)
    : Module(place, "torch.nn.modules.sparse.Embedding"),
      weight(tied("weight", tied_weight)),
      padding(padding) {}

LayerNorm::LayerNorm(const Place& place, int64_t width, double epsilon)
    : Module(place, "torch.nn.modules.normalization.LayerNorm"),
      weight(parameter("weight", {width})),
      bias(parameter("bias", {width})),
      epsilon(epsilon) {}

Tensor LayerNorm::forward(Tensor x) const {
  return call("layer_norm", std::move(x), Sizes{weight.size(0)}, weight, bias, epsilon);
}

Dropout::Dropout(const Place& place, double probability)
    : Module(place, "torch.nn.modules.dropout.Dropout"), probability(probability) {}

Conv1d::Conv1d(const Place& place, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding)
    : Module(place, "torch.nn.modules.conv.Conv1d"),
      weight(parameter("weight", {out, in, kernel})),
      bias(parameter("bias", {out})),
      stride(stride),
      padding(padding) {}

Tensor Conv1d::forward(Tensor x) const {
  return call("conv1d", std::move(x), weight, bias, Sizes{stride}, Sizes{padding});
}

Conv2d::Conv2d(const Place& place, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
               bool has_bias)
    : Module(place, "torch.nn.modules.conv.Conv2d"),
      weight(parameter("weight", {out, in, kernel, kernel})),
      stride(stride),
      padding(padding) {
  if (has_bias) bias = parameter("bias", {out});
}

Tensor Conv2d::forward(Tensor x) const {
  return call("conv2d", std::move(x), weight, bias, Sizes{stride, stride}, Sizes{padding, padding});
}

BatchNorm2d::BatchNorm2d(const Place& place, int64_t channels, double epsilon, double momentum)
    : Module(place, "torch.nn.modules.batchnorm.BatchNorm2d"),
      weight(parameter("weight", {channels})),
      bias(parameter("bias", {channels})),
      running_mean(buffer("running_mean", {channels}, DType::f32, true)),
      running_var(buffer("running_var", {channels}, DType::f32, true)),
      num_batches_tracked(buffer("num_batches_tracked", {}, DType::i64, true)),
      epsilon(epsilon),
      momentum(momentum) {}

Tensor BatchNorm2d::forward(Tensor x) const {
  (void)call("add_.Tensor", num_batches_tracked, 1);
  return call("batch_norm", std::move(x), weight, bias, running_mean, running_var, true, momentum, epsilon,
              true);
}

}  // namespace metaprof::nn
