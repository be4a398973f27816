#pragma once
// The framework's functions by their usual names. Each takes its tensors by value: what is moved in goes when
// the call is written down. Whatever is not here is `call("name.overload", …)`.

#include "program/nn/tensor.h"

namespace metaprof::nn {

/// Behind the last element of a dimension, in slices.
inline constexpr int64_t kEnd = INT64_MAX;

Tensor operator+(Tensor a, Tensor b);
Tensor operator-(Tensor a, Tensor b);
Tensor operator*(Tensor a, Tensor b);
Tensor operator/(Tensor a, Tensor b);
Tensor operator+(Tensor a, double b);
Tensor operator*(Tensor a, double b);
Tensor operator/(Tensor a, double b);
Tensor operator-(Tensor a);

Tensor matmul(Tensor a, Tensor b);
Tensor linear(Tensor x, Tensor weight, Tensor bias);
Tensor pow(Tensor x, double exponent);
Tensor mean(Tensor x, int64_t dim, bool keep);
Tensor sum(Tensor x, int64_t dim, bool keep);
Tensor rsqrt(Tensor x);
Tensor tanh(Tensor x);
Tensor sigmoid(Tensor x);
Tensor relu(Tensor x);
Tensor silu(Tensor x);
/// `approximate`: "none" or "tanh".
Tensor gelu(Tensor x, const char* approximate = "none");
Tensor softmax(Tensor x, int64_t dim);
/// Computed and given back in another type.
Tensor softmax(Tensor x, int64_t dim, DType dtype);
Tensor dropout(Tensor x, double probability);

// Views. Sizes of -1 follow from the others.
Tensor view(Tensor x, Sizes sizes);
Tensor reshape(Tensor x, Sizes sizes);
Tensor transpose(Tensor x, int64_t a, int64_t b);
Tensor permute(Tensor x, Sizes dims);
Tensor expand(Tensor x, Sizes sizes);
Tensor unsqueeze(Tensor x, int64_t dim);
Tensor squeeze(Tensor x, int64_t dim);
Tensor flatten(Tensor x, int64_t first, int64_t last = -1);
/// x[begin:end] in one dimension, as Python's indexing writes it: the whole dimension is an alias.
Tensor slice(Tensor x, int64_t dim, int64_t begin, int64_t end);
/// x[index] in one dimension.
Tensor select(Tensor x, int64_t dim, int64_t index);
std::vector<Tensor> chunk(Tensor x, int64_t chunks, int64_t dim);
std::vector<Tensor> split(Tensor x, int64_t size, int64_t dim);
std::vector<Tensor> split(Tensor x, Sizes sizes, int64_t dim);

/// The tensor itself where it is contiguous: Python does not call the operator then.
Tensor contiguous(Tensor x);
Tensor cat(std::vector<Tensor> tensors, int64_t dim);
Tensor stack(std::vector<Tensor> tensors, int64_t dim);
/// To a type that the source names, which holds in every precision.
Tensor to(Tensor x, DType dtype);
/// To the type of another tensor.
Tensor to(Tensor x, DTypeOf dtype);

struct Attention {
  Tensor mask;
  double dropout = 0;
  bool causal = false;
  std::optional<double> scale = {};
  bool grouped = false;  ///< fewer heads of keys and values than of queries
};
/// query[batch, heads, length, width], key and value[batch, heads, keys, width] → as query.
Tensor scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, const Attention& attention);

/// logits[count, classes], labels i64[count] → []
Tensor cross_entropy(Tensor logits, Tensor labels);
Tensor mse_loss(Tensor x, Tensor target);

}  // namespace metaprof::nn
