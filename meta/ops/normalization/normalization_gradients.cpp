#include "meta/ops/normalization/normalization_gradients.h"

namespace metaprof {

namespace {
void divide(const Tensor& tensor, double by) { call<"div_.Scalar">(session_of(tensor), tensor, by); }
}  // namespace

void add_to(Tensor& sum, const Tensor& part) {
  if (!sum.defined()) {
    sum = part;
  } else {
    call<"add_.Tensor">(session_of(sum), sum, part);
  }
}

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

}  // namespace metaprof
