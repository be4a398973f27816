#pragma once
// The backward of a normalization as operators, which its second derivative is made of (FunctionsManual.cpp,
// 2.11, batchnorm_double_backward and layer_norm_double_backward).

#include "meta/ops/rules/formulas.h"

namespace metaprof {

/// ẋ = (x − μ)σ over `count` elements; sums keep the dimensions that they run over.
struct Normalized {
  Tensor centred;                  // x − μ
  Tensor sigma, sigma_2, sigma_3;  // inverse deviation and its powers
  Tensor centred_sigma_3;
  int64_t count;
  Sizes dims;
  bool one_by_one;  // one sum per dimension
};

Normalized normalized(const Tensor& input, const Tensor& mean, const Tensor& sigma, Sizes dims,
                      bool one_by_one);
/// Σ over the dimensions of `n`.
Tensor total(const Normalized& n, const Tensor& tensor);
/// scale · (N·g − Σg − ẋσ²·Σgẋ) · σ / N: the backward of a normalization, as a function of g.
Tensor first_backward(const Normalized& n, const Tensor& g, const Tensor& scale);
/// What the second derivative of the input has from the gradient of the input, for g = grad_out · weight.
Tensor bent_input(const Normalized& n, const Tensor& g, const Tensor& inner, const Tensor& g_along,
                  const Tensor& g_total);
/// What it has from the gradient of the weight: the slope of g·ẋσ.
Tensor bent_by_weight(const Normalized& n, const Tensor& g, const Tensor& g_total, const Tensor& g_along);

/// Adds in place, or begins a sum.
void add_to(Tensor& sum, const Tensor& part);

}  // namespace metaprof
