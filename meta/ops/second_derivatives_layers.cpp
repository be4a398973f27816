// Second derivatives of convolutions and normalizations.

#include "meta/ops/arithmetic.h"
#include "meta/ops/second_derivatives.h"

namespace metaprof {
namespace {

Tensor narrow(const Tensor& tensor, int64_t dim, int64_t start, int64_t length) {
  return call<"narrow">(session_of(tensor), tensor, dim, start, length);
}
void add_to(Tensor& sum, const Tensor& part) {
  if (!sum.defined()) {
    sum = part;
  } else {
    call<"add_.Tensor">(session_of(sum), sum, part);
  }
}
void divide(const Tensor& tensor, double by) { call<"div_.Scalar">(session_of(tensor), tensor, by); }

// --- convolution (aten/src/ATen/native/Convolution.cpp, _convolution_double_backward)

struct Geometries {
  Value stride, padding, dilation;
  bool transposed;
  Value output_padding;
  Value groups;
};

Geometries geometries(Backward& b) {
  return {b["stride"],         b["padding"], b["dilation"], b.boolean("transposed"),
          b["output_padding"], b["groups"]};
}

Tensor convolve(Backward& b, const Tensor& input, const Tensor& weight, const Geometries& g) {
  return call<"convolution">(b.session, input, weight, Value(), g.stride, g.padding, g.dilation, g.transposed,
                             g.output_padding, g.groups);
}

// The GPU's convolutions want their weights row-major.
Tensor as_weight(const Tensor& tensor) { return tensor.is_cuda() ? contiguous(tensor) : tensor; }

Tensor of_output_gradient(Backward& b) {
  const Geometries g = geometries(b);
  Tensor total;
  if (b.grad(0).defined()) total = convolve(b, b.grad(0), as_weight(b("weight")), g);
  if (b.grad(1).defined()) {
    const Tensor part = convolve(b, b("input"), as_weight(b.grad(1)), g);
    total = total.defined() ? total + part : part;
  }
  if (b.grad(2).defined()) {
    Sizes sizes(b("grad_output").sizes().size(), 1);
    sizes[1] = b.grad(2).numel();
    const Tensor bias = expand(view(b.grad(2), sizes), b("grad_output").sizes());
    total = total.defined() ? total + bias : bias;
  }
  return total.defined() ? total : zeros_like(b("grad_output"));
}

Tensor of_weight(Backward& b) {
  if (!b.grad(0).defined()) return zeros_like(b("weight"));
  Geometries g = geometries(b);
  std::swap(g.stride, g.dilation);
  const bool transposed = std::exchange(g.transposed, false);
  const int64_t groups = b.integer("groups");
  g.groups = Value(1);
  const Tensor outer = transpose(b("grad_output"), 0, 1), inner = transpose(b.grad(0), 0, 1);
  auto product = [&](const Tensor& in, const Tensor& out) {
    return transposed ? convolve(b, out, as_weight(in), g) : convolve(b, in, as_weight(out), g);
  };
  Tensor result;
  if (groups == 1) {
    result = product(inner, outer);
  } else {
    Value::Tensors parts;
    const int64_t in = inner.size(0) / groups, out = outer.size(0) / groups;
    for (int64_t i = 0; i < groups; ++i)
      parts.push_back(product(narrow(inner, 0, i * in, in), narrow(outer, 0, i * out, out)));
    result = call<"cat">(b.session, std::move(parts), 1);
  }
  result = transpose(result, 0, 1);
  const Sizes& sizes = b("weight").sizes();
  for (int64_t d = 2; d < int64_t(sizes.size()); ++d)
    if (result.size(d) > sizes[size_t(d)]) result = narrow(result, d, 0, sizes[size_t(d)]);
  return result;
}

// What the input has beyond the sizes that follow from the output's.
Sizes missing_padding(Backward& b) {
  const Sizes &weight = b("weight").sizes(), &input = b("input").sizes(), &output = b("grad_output").sizes();
  const size_t dims = input.size() - 2;
  auto at = [](const Sizes& list, size_t i) { return list.size() == 1 ? list[0] : list[i]; };
  Sizes padding(dims, 0);
  for (size_t i = 0; i < dims; ++i) {
    const int64_t expected = (weight[i + 2] - 1) * at(b.ints("dilation"), i) - 2 * at(b.ints("padding"), i) +
                             at(b.ints("stride"), i) * (output[i + 2] - 1) + 1;
    padding[i] = input[i + 2] - expected;
  }
  return padding;
}

Tensor of_input(Backward& b) {
  if (!b.grad(1).defined()) return zeros_like(b("input"));
  Geometries g = geometries(b);
  g.transposed = !g.transposed;
  if (g.transposed) g.output_padding = Value(missing_padding(b));
  return convolve(b, b("grad_output"), as_weight(b.grad(1)), g);
}

Gradients convolution_rows(Backward& b) {
  Gradients gradients;
  gradients.push_back(of_output_gradient(b));
  const Tensor weight = of_weight(b);
  gradients.push_back(of_input(b));
  gradients.push_back(weight);
  return gradients;
}

// --- normalization: ẋ = (x − μ)σ over `count` elements; sums keep the dimensions that they run over

struct Normalized {
  Tensor centred;                  // x − μ
  Tensor sigma, sigma_2, sigma_3;  // inverse deviation and its powers
  Tensor centred_sigma_3;
  int64_t count;
  Sizes dims;
  bool one_by_one;  // one sum per dimension
};

Tensor total(const Normalized& n, const Tensor& tensor) {
  if (!n.one_by_one) return sum(tensor, n.dims, true);
  Tensor result = tensor;
  for (int64_t d : n.dims) result = sum(result, Sizes{d}, true);
  return result;
}

Normalized normalized(const Tensor& input, const Tensor& mean, const Tensor& sigma, Sizes dims,
                      bool one_by_one) {
  Normalized n{.centred = input - mean,
               .sigma = sigma,
               .sigma_2 = pow(sigma, 2),
               .sigma_3 = pow(sigma, 3),
               .centred_sigma_3 = {},
               .count = 1,
               .dims = std::move(dims),
               .one_by_one = one_by_one};
  n.centred_sigma_3 = n.centred * n.sigma_3;
  for (int64_t d : n.dims) n.count *= input.size(d);
  return n;
}

// scale · (N·g − Σg − ẋσ²·Σgẋ) · σ / N: the backward of a normalization, as a function of g.
Tensor first_backward(const Normalized& n, const Tensor& g, const Tensor& scale) {
  const Tensor front = scale * n.sigma;
  divide(front, double(n.count));
  const Tensor back = g * n.count;
  call<"sub_.Tensor">(session_of(back), back, total(n, g));
  const Tensor along = total(n, g * n.centred);
  const Tensor slope = n.centred * n.sigma_2;
  call<"sub_.Tensor">(session_of(back), back, slope * along);
  return front * back;
}

// What the second derivative of the input has from the gradient of the input, for g = grad_out · weight.
Tensor bent_input(const Normalized& n, const Tensor& g, const Tensor& inner, const Tensor& g_along,
                  const Tensor& g_total) {
  const double count = double(n.count);
  Session& s = session_of(g);
  const Tensor inner_total = total(n, inner);
  const Tensor inner_along = total(n, inner * n.centred);
  const Tensor all = inner_total * g_total;
  divide(all, count);
  call<"sub_.Tensor">(s, all, total(n, inner * g));
  const Tensor mixed = n.sigma_2 * g_along * inner_along;
  call<"mul_.Scalar">(s, mixed, 3.0 / count);
  call<"add_.Tensor">(s, all, mixed);
  Tensor result = n.centred_sigma_3 * all;
  divide(result, count);
  const Tensor rest_of_g = g_total / count - g;
  const Tensor inner_factor = inner_along * n.sigma_3;
  divide(inner_factor, count);
  const Tensor second = inner_factor * rest_of_g;
  const Tensor rest_of_inner = inner_total / count - inner;
  const Tensor g_factor = g_along * n.sigma_3;
  divide(g_factor, count);
  const Tensor third = g_factor * rest_of_inner;
  call<"add_.Tensor">(s, result, second);
  call<"add_.Tensor">(s, result, third);
  return result;
}

// What it has from the gradient of the weight: the slope of g·ẋσ.
Tensor bent_by_weight(const Normalized& n, const Tensor& g, const Tensor& g_total, const Tensor& g_along) {
  const double count = double(n.count);
  const Tensor result = g * n.sigma;
  const Tensor level = n.sigma * g_total;
  divide(level, -count);
  const Tensor tilt = n.centred_sigma_3 * g_along;
  divide(tilt, -count);
  call<"add_.Tensor">(session_of(result), result, level);
  call<"add_.Tensor">(session_of(result), result, tilt);
  return result;
}

Tensor one_like(const Tensor& tensor) {
  return call<"ones">(session_of(tensor), Sizes{}, tensor.dtype(), Value(), tensor.device());
}

// --- layer norm (layer_norm_double_backward)

Gradients layer_norm_rows(Backward& b) {
  Tensor input = b("input"), outer = b("grad_out"), weight = b("weight");
  const Sizes input_sizes = input.sizes();
  const int64_t columns = numel(b.ints("normalized_shape")), rows = input.numel() / columns;
  const Sizes matrix{rows, columns}, row{1, columns};
  auto reshaped = [](const Tensor& tensor, const Sizes& sizes) {
    return tensor.defined() ? reshape(tensor, sizes) : tensor;
  };
  input = reshaped(input, matrix);
  outer = reshaped(outer, matrix);
  const Tensor mean = reshaped(b("mean"), Sizes{rows, 1}), sigma = reshaped(b("rstd"), Sizes{rows, 1});
  const Sizes weight_sizes = weight.defined() ? weight.sizes() : Sizes();
  weight = reshaped(weight, row);
  const Tensor of_weight = reshaped(weight.defined() ? b.grad(1) : Tensor(), row),
               of_bias = reshaped(b.grad(2), row), of_input = reshaped(b.grad(0), matrix);
  const Normalized n = normalized(input, mean, sigma, Sizes{1}, false);
  Gradients gradients{Tensor(), Tensor(), Tensor()};  // input, weight, grad_out
  if (b.wants("input")) {
    const Tensor g = weight.defined() ? outer * weight : outer;
    const Tensor g_along = total(n, g * n.centred), g_total = total(n, g);
    if (of_input.defined()) gradients[0] = bent_input(n, g, of_input, g_along, g_total);
    if (of_weight.defined()) {
      const Tensor product = outer * of_weight;
      add_to(gradients[0], bent_by_weight(n, product, total(n, outer * of_weight),
                                          total(n, outer * of_weight * n.centred)));
    }
    if (gradients[0].defined()) gradients[0] = view(gradients[0], input_sizes);
  }
  if (weight.defined() && b.wants("weight") && of_input.defined())
    gradients[1] =
        view(sum(outer * first_backward(n, of_input, one_like(input)), Sizes{0}, false), weight_sizes);
  if (b.wants("grad_out")) {
    Tensor& result = gradients[2];
    if (of_input.defined()) result = first_backward(n, of_input, weight.defined() ? weight : one_like(input));
    if (of_weight.defined()) add_to(result, of_weight * n.centred * n.sigma);
    if (of_bias.defined()) {
      if (result.defined()) {
        add_to(result, of_bias);
      } else {
        result = of_bias;
      }
    }
    if (result.defined()) result = reshape(expand(result, matrix), input_sizes);
  }
  return gradients;
}

// --- batch norm (batchnorm_double_backward)

Tensor over_channels(const Tensor& tensor, int64_t dims) {
  Tensor result = tensor;
  for (int64_t d = 0; d < dims - 2; ++d) result = unsqueeze(result, d + 1);
  return result;
}

Tensor expanded(const Tensor& tensor, const Sizes& sizes) {
  return tensor.defined() ? expand(over_channels(tensor, int64_t(sizes.size())), sizes) : tensor;
}

Gradients batch_norm_rows(Backward& b, Name train_argument, Name sigma_argument) {
  const Tensor &input = b("input"), &outer = b("grad_out"), &weight = b("weight");
  const bool train = b.boolean(train_argument);
  const Tensor gamma = expanded(weight, input.sizes());
  const Tensor of_weight = expanded(weight.defined() ? b.grad(1) : Tensor(), input.sizes());
  const Tensor of_bias = expanded(weight.defined() ? b.grad(2) : Tensor(), input.sizes());
  const Tensor& of_input = b.grad(0);
  const Tensor mean = unsqueeze(over_channels(train ? b("save_mean") : b("running_mean"), input.dim()), 0);
  Tensor sigma = b(sigma_argument);
  if (!train) sigma = pow(b("running_var") + b["eps"], -0.5);
  Sizes dims{0};
  for (int64_t d = 2; d < input.dim(); ++d) dims.push_back(d);
  const Normalized n =
      normalized(input, mean, unsqueeze(over_channels(sigma, input.dim()), 0), std::move(dims), true);
  auto per_channel = [&](Tensor tensor) {
    for (size_t d = 0; d < n.dims.size(); ++d) tensor = sum(tensor, Sizes{d == 0 ? 0 : 1}, false);
    return tensor;
  };
  const Tensor g_along = total(n, outer * n.centred), g_total = total(n, outer);
  Gradients gradients{Tensor(), Tensor(), Tensor()};  // input, weight, grad_out
  if (train && of_input.defined()) {
    gradients[0] = bent_input(n, outer, of_input, g_along, g_total);
    if (gamma.defined()) gradients[0] = gamma * gradients[0];
  }
  if (of_weight.defined())
    add_to(gradients[0], of_weight * (train ? bent_by_weight(n, outer, g_total, g_along) : outer * n.sigma));
  if (weight.defined() && of_input.defined())
    gradients[1] =
        per_channel(of_input * (train ? first_backward(n, outer, one_like(input)) : outer * n.sigma));
  if (of_input.defined()) {
    const Tensor scale = gamma.defined() ? gamma : one_like(input);
    gradients[2] = train ? first_backward(n, of_input, scale) : of_input * (scale * n.sigma);
  }
  if (of_weight.defined()) add_to(gradients[2], of_weight * n.centred * n.sigma);
  if (of_bias.defined()) gradients[2] = gradients[2].defined() ? gradients[2] + of_bias : of_bias;
  return gradients;
}

}  // namespace

Derivatives convolution_twice() {
  return {{{"grad_output", "input", "weight"}, {"grad_output", "input", "weight"}, convolution_rows}};
}

Derivatives layer_norm_twice() {
  return {
      {{"input", "weight", "grad_out"}, {"input", "weight", "grad_out", "mean", "rstd"}, layer_norm_rows}};
}

Derivatives batch_norm_twice() {
  return {{{"input", "weight", "grad_out"},
           {"input", "weight", "grad_out", "running_mean", "running_var", "save_mean", "save_invstd"},
           Formula::Function([](Backward& b) { return batch_norm_rows(b, "train", "save_invstd"); })}};
}

Derivatives any_batch_norm_twice() {
  return {{{"input", "weight", "grad_out"},
           {"input", "weight", "grad_out", "running_mean", "running_var", "save_mean", "save_var"},
           Formula::Function([](Backward& b) { return batch_norm_rows(b, "update", "save_var"); })}};
}

}  // namespace metaprof
