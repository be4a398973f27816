#pragma once
// The framework's own modules, torch.nn.

#include "program/nn/module.h"
#include "program/nn/operators.h"

namespace metaprof::nn {

/// x[..., in] → [..., out]
struct Linear : Module<Linear> {
  Linear(const Place& place, int64_t in, int64_t out, bool has_bias = true);
  /// With the weight of another module (a head that is tied to an embedding): [out, in].
  Linear(const Place& place, const Tensor& tied_weight, bool has_bias);
  Linear(const Place& place, const Tensor& tied_weight, const Tensor& tied_bias);
  Tensor forward(Tensor x) const { return linear(std::move(x), weight, bias); }
  Tensor weight, bias;
};

/// Indices i64[...] → [..., width]
struct Embedding : Module<Embedding> {
  /// `padding`: the index whose row gets no gradient; -1: none.
  Embedding(const Place& place, int64_t rows, int64_t width, int64_t padding = -1);
  Embedding(const Place& place, const Tensor& tied_weight, int64_t padding = -1);
  Tensor forward(Tensor indices) const { return call("embedding", weight, std::move(indices), padding); }
  Tensor weight;
  int64_t padding;
};

/// Over the last dimension.
struct LayerNorm : Module<LayerNorm> {
  LayerNorm(const Place& place, int64_t width, double epsilon = 1e-5);
  Tensor forward(Tensor x) const;
  Tensor weight, bias;
  double epsilon;
};

struct Dropout : Module<Dropout> {
  Dropout(const Place& place, double probability);
  Tensor forward(Tensor x) const { return dropout(std::move(x), probability); }
  double probability;
};

/// x[batch, in, length] → [batch, out, …]
struct Conv1d : Module<Conv1d> {
  Conv1d(const Place& place, int64_t in, int64_t out, int64_t kernel, int64_t stride = 1,
         int64_t padding = 0);
  Tensor forward(Tensor x) const;
  Tensor weight, bias;
  int64_t stride, padding;
};

/// x[batch, in, height, width] → [batch, out, …]; square kernels.
struct Conv2d : Module<Conv2d> {
  Conv2d(const Place& place, int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t padding = 0,
         bool has_bias = true);
  Tensor forward(Tensor x) const;
  Tensor weight, bias;
  int64_t stride, padding;
};

/// x[batch, channels, height, width]; in training mode, with running statistics.
struct BatchNorm2d : Module<BatchNorm2d> {
  BatchNorm2d(const Place& place, int64_t channels, double epsilon = 1e-5, double momentum = 0.1);
  Tensor forward(Tensor x) const;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
  double epsilon, momentum;
};

}  // namespace metaprof::nn
