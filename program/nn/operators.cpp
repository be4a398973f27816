#include "program/nn/operators.h"

namespace metaprof::nn {

Tensor operator+(Tensor a, Tensor b) { return call("add.Tensor", std::move(a), std::move(b)); }
Tensor operator-(Tensor a, Tensor b) { return call("sub.Tensor", std::move(a), std::move(b)); }
Tensor operator*(Tensor a, Tensor b) { return call("mul.Tensor", std::move(a), std::move(b)); }
Tensor operator/(Tensor a, Tensor b) { return call("div.Tensor", std::move(a), std::move(b)); }
Tensor operator+(Tensor a, double b) { return call("add.Tensor", std::move(a), b); }
Tensor operator*(Tensor a, double b) { return call("mul.Tensor", std::move(a), b); }
Tensor operator/(Tensor a, double b) { return call("div.Tensor", std::move(a), b); }
Tensor operator-(Tensor a) { return call("neg", std::move(a)); }

Tensor matmul(Tensor a, Tensor b) { return call("matmul", std::move(a), std::move(b)); }
Tensor linear(Tensor x, Tensor weight, Tensor bias) {
  return call("linear", std::move(x), std::move(weight), std::move(bias));
}
Tensor pow(Tensor x, double exponent) { return call("pow.Tensor_Scalar", std::move(x), exponent); }
Tensor mean(Tensor x, int64_t dim, bool keep) { return call("mean.dim", std::move(x), Sizes{dim}, keep); }
Tensor sum(Tensor x, int64_t dim, bool keep) {
  return call("sum.dim_IntList", std::move(x), Sizes{dim}, keep);
}
Tensor rsqrt(Tensor x) { return call("rsqrt", std::move(x)); }
Tensor tanh(Tensor x) { return call("tanh", std::move(x)); }
Tensor sigmoid(Tensor x) { return call("sigmoid", std::move(x)); }
Tensor relu(Tensor x) { return call("relu", std::move(x)); }
Tensor silu(Tensor x) { return call("silu", std::move(x)); }
Tensor gelu(Tensor x, const char* approximate) { return call("gelu", std::move(x), approximate); }
Tensor softmax(Tensor x, int64_t dim) { return call("softmax.int", std::move(x), dim); }
Tensor softmax(Tensor x, int64_t dim, DType dtype) { return call("softmax.int", std::move(x), dim, dtype); }
Tensor dropout(Tensor x, double probability) { return call("dropout", std::move(x), probability, true); }

Tensor view(Tensor x, Sizes sizes) { return call("view", std::move(x), std::move(sizes)); }
Tensor reshape(Tensor x, Sizes sizes) { return call("reshape", std::move(x), std::move(sizes)); }
Tensor transpose(Tensor x, int64_t a, int64_t b) { return call("transpose.int", std::move(x), a, b); }
Tensor permute(Tensor x, Sizes dims) { return call("permute", std::move(x), std::move(dims)); }
Tensor expand(Tensor x, Sizes sizes) { return call("expand", std::move(x), std::move(sizes)); }
Tensor unsqueeze(Tensor x, int64_t dim) { return call("unsqueeze", std::move(x), dim); }
Tensor squeeze(Tensor x, int64_t dim) { return call("squeeze.dim", std::move(x), dim); }
Tensor flatten(Tensor x, int64_t first, int64_t last) {
  return call("flatten.using_ints", std::move(x), first, last);
}

Tensor slice(Tensor x, int64_t dim, int64_t begin, int64_t end) {
  if (begin == 0 && end >= x.size(dim)) return call("alias", std::move(x));
  return call("slice.Tensor", std::move(x), dim, begin, end);
}

Tensor select(Tensor x, int64_t dim, int64_t index) { return call("select.int", std::move(x), dim, index); }
std::vector<Tensor> chunk(Tensor x, int64_t chunks, int64_t dim) {
  return call_all("chunk", std::move(x), chunks, dim);
}
std::vector<Tensor> split(Tensor x, int64_t size, int64_t dim) {
  return call_all("split.Tensor", std::move(x), size, dim);
}
std::vector<Tensor> split(Tensor x, Sizes sizes, int64_t dim) {
  return call_all("split_with_sizes", std::move(x), std::move(sizes), dim);
}

Tensor contiguous(Tensor x) {
  if (x.is_contiguous()) return x;
  return call("contiguous", std::move(x));
}

Tensor cat(std::vector<Tensor> tensors, int64_t dim) { return call("cat", std::move(tensors), dim); }
Tensor stack(std::vector<Tensor> tensors, int64_t dim) { return call("stack", std::move(tensors), dim); }
Tensor to(Tensor x, DType dtype) { return call("to.dtype", std::move(x), dtype); }
Tensor to(Tensor x, DTypeOf dtype) { return call("to.dtype", std::move(x), dtype); }

Tensor scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, const Attention& attention) {
  return call("scaled_dot_product_attention", std::move(query), std::move(key), std::move(value),
              attention.mask, attention.dropout, attention.causal,
              attention.scale ? Value(*attention.scale) : Value(), attention.grouped);
}

Tensor cross_entropy(Tensor logits, Tensor labels) {
  return call("cross_entropy_loss", std::move(logits), std::move(labels));
}

Tensor mse_loss(Tensor x, Tensor target) { return call("mse_loss", std::move(x), std::move(target)); }

}  // namespace metaprof::nn
