// Second derivatives of activations and losses.

#include "meta/ops/second_derivatives.h"

#include <cmath>
#include <numbers>

#include "meta/ops/arithmetic.h"
#include "meta/ops/loss.h"

namespace metaprof {
namespace {

Tensor narrow(const Tensor& tensor, int64_t dim, int64_t start, int64_t length) {
  return call<"narrow">(session_of(tensor), tensor, dim, start, length);
}

Tensor sigmoid(const Tensor& tensor) { return call<"sigmoid">(session_of(tensor), tensor); }

// --- gelu

Tensor gelu_slope_of_slope(const Tensor& x) {
  const double scale = std::numbers::inv_sqrtpi * std::numbers::sqrt2 * 0.5;
  const Tensor square = x * x;
  const Tensor density = scale * exp(-0.5 * square);
  const Tensor bend = square * density;
  return 2 * density - bend;
}

Tensor tanh_gelu_slope_of_slope(const Tensor& x) {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kappa = 0.044715;
  Session& s = session_of(x);
  const Tensor inner = scale * (x + kappa * pow(x, 3));
  const Tensor tanh_inner = call<"tanh">(s, inner);
  const Tensor sech_inner = 1 / Tensor(call<"cosh">(s, inner));
  const Tensor f = 0.5 * x;
  const Tensor g = 1 - tanh_inner * tanh_inner;
  const Tensor h = scale * (3 * kappa * x * x + 1);
  const Tensor f_prime_gh = 0.5 * g * h;
  const Tensor negative = neg(sech_inner) * tanh_inner;
  const Tensor g_prime = 2 * sech_inner * negative * h;
  const Tensor g_prime_fh = f * h * g_prime;
  const Tensor h_prime = 6 * kappa * x * scale;
  const Tensor h_prime_fg = f * g * h_prime;
  return 2 * f_prime_gh + g_prime_fh + h_prime_fg;
}

Tensor gelu_of_self(Backward& b) {
  const bool tanh = b["approximate"].string() == "tanh";
  const Tensor slope = tanh ? tanh_gelu_slope_of_slope(b("self")) : gelu_slope_of_slope(b("self"));
  return b.grad() * b("grad_output") * slope;
}

// --- other activations

Tensor softplus_of_self(Backward& b) {
  const Tensor grad = b.grad() * b("grad_output");
  const Tensor x = b("self") * b["beta"];
  const Tensor below = to(lt(x, b["threshold"]), grad.dtype());
  const Tensor slope = sigmoid(x);
  const Tensor bent = call<"sigmoid_backward">(b.session, grad, slope);
  return bent * below * b["beta"];
}

Tensor hardswish_of_self(Backward& b) {
  const Tensor& self = b("self");
  const Tensor zero = call<"zeros">(b.session, Sizes{}, self.dtype(), Value(), self.device());
  const Tensor bent = b.grad() * b("grad_output") / 3.0;
  const Tensor below = lt(self, 3.0);
  const Tensor above = gt(self, -3.0);
  return where(logical_and(above, below), bent, zero);
}

Tensor elu_of_self(Backward& b) {
  const Tensor& x = b("self_or_result");
  const Tensor negative = to(lt(x, 0), b.grad().dtype());
  const Tensor grad = b.grad() * b("grad_output") * b["input_scale"];
  if (b.boolean("is_result")) return grad * negative;
  const Tensor slope =
      call<"elu_backward">(b.session, grad, b["alpha"], b["scale"], b["input_scale"], false, x);
  return slope * negative;
}

Tensor log_sigmoid_of_self(Backward& b) {
  const Tensor grad = b.grad() * b("grad_output");
  const Tensor slope = sigmoid(b("self"));
  return grad * (slope - 1) * slope;
}

Tensor glu_of_gradient(Backward& b) {
  const Tensor& self = b("self");
  const int64_t dim = wrap_dim(b.integer("dim"), self.dim());
  Sizes half = self.sizes();
  const int64_t size = half[size_t(dim)] /= 2;
  Tensor both;
  {
    const Tensor ones = call<"ones">(b.session, half, self.dtype(), Value(), self.device());
    const Tensor slope = call<"glu_backward">(b.session, ones, self, dim);
    both = b.grad() * slope;
  }
  const Tensor second = narrow(both, dim, size, size);
  return narrow(both, dim, 0, size) + second;
}

Tensor glu_of_self(Backward& b) {
  const int64_t dim = b.integer("dim"), size = b("self").size(dim) / 2;
  const Tensor &grad = b.grad(), &outer = b("grad_output");
  const Tensor first = narrow(b("self"), dim, 0, size);
  const Tensor gate = sigmoid(narrow(b("self"), dim, size, size));
  const Tensor rest = 1 - gate;
  const Tensor slope = gate * rest;
  const Tensor grad_first = narrow(grad, dim, 0, size), grad_second = narrow(grad, dim, size, size);
  const Tensor scaled_first = grad_second * first;
  const Tensor of_first = grad_second * outer * slope;
  const Tensor fall = gate * slope;
  const Tensor bend = slope * rest - fall;
  const Tensor across = grad_first * outer * slope;
  const Tensor of_second = scaled_first * outer * bend + across;
  return call<"cat">(b.session, Value::Tensors{of_first, of_second}, dim);
}

// --- losses

// grad · grad_output, which may be a single number.
Tensor product_of_gradients(Backward& b) { return b.grad() * b("grad_output"); }

Tensor averaged(Backward& b, Tensor gradient) {
  if (reduction(b) == Reduction::mean) call<"div_.Scalar">(b.session, gradient, b.shape("self")->numel);
  return gradient;
}

Tensor mse_slope(Backward& b) { return averaged(b, 2 * product_of_gradients(b)); }

Tensor distance_below(Backward& b, Name limit) {
  const Tensor distance = abs(b("self") - b("target"));
  return lt(distance, b[limit]);
}

Tensor smooth_l1_slope(Backward& b) {
  const Tensor grad = product_of_gradients(b);
  if (b.real("beta") == 0) return zeros_of(grad, grad.sizes());
  const Tensor near = to(distance_below(b, "beta"), grad.dtype());
  return averaged(b, grad * near / b["beta"]);
}

Tensor huber_slope(Backward& b) {
  const Tensor grad = product_of_gradients(b);
  return averaged(b, grad * distance_below(b, "delta"));
}

Tensor soft_margin_slope(Backward& b) {
  const Tensor grad = product_of_gradients(b);
  Tensor z;
  {
    const Tensor negative = neg(b("target"));
    z = exp(b("self") * negative);
  }
  const Tensor more = z + 1;
  const Tensor square = more * more;
  const Tensor target_square = b("target") * b("target");
  return averaged(b, grad * target_square * z / square);
}

// The gradient of a reduced loss is a number: Σ slope · grad.
template <Tensor (*slope_for)(Backward&, const Tensor& gradient)>
Tensor of_reduced_gradient(Backward& b) {
  if (reduction(b) == Reduction::none) return slope_for(b, b.grad());
  const Tensor one = call<"ones_like">(b.session, b("grad_output"));
  const Tensor slope = slope_for(b, one);
  return sum(slope * b.grad());
}

Tensor huber_backward(Backward& b, const Tensor& gradient) {
  return call<"huber_loss_backward">(b.session, gradient, b("self"), b("target"), b["reduction"], b["delta"]);
}
Tensor soft_margin_backward(Backward& b, const Tensor& gradient) {
  return call<"soft_margin_loss_backward">(b.session, gradient, b("self"), b("target"), b["reduction"]);
}

// --- binary cross entropy

Tensor weighted(Backward& b, Tensor gradient) {
  if (b("weight").defined()) call<"mul_.Tensor">(b.session, gradient, b("weight"));
  return gradient;
}

constexpr double kEpsilon = 1e-12;

Tensor entropy_of_gradient(Backward& b) {
  const Tensor &self = b("self"), &target = b("target");
  Tensor slope;
  {
    const Tensor rest = 1 - self + kEpsilon;
    const Tensor bounds = (self + kEpsilon) * rest;
    slope = (self - target) / bounds;
  }
  call<"mul_.Tensor">(b.session, slope, b.grad());
  slope = weighted(b, slope);
  return reduction(b) == Reduction::mean ? slope / self.numel() : slope;
}

Tensor entropy_of_self(Backward& b) {
  const Tensor &self = b("self"), &target = b("target");
  const Tensor more = self + kEpsilon;
  const Tensor rest = 1 - self + kEpsilon;
  Tensor slope;
  {
    const Tensor rest_square = pow(rest, 2);
    const Tensor bounds = pow(more, 2) * rest_square;
    const Tensor mixed = 2 * self * target;
    const Tensor above = self * self - mixed + target;
    slope = above / bounds;
  }
  {
    const Tensor grad = product_of_gradients(b);
    call<"mul_.Tensor">(b.session, slope, grad);
  }
  slope = weighted(b, slope);
  return reduction(b) == Reduction::mean ? slope / self.numel() : slope;
}

Tensor entropy_of_target(Backward& b) {
  const Tensor& self = b("self");
  Tensor slope = neg(b.grad()) * b("grad_output");
  slope = weighted(b, slope);
  {
    const Tensor bounds = 1 - self;
    call<"mul_.Tensor">(b.session, bounds, self);
    call<"clamp_min_">(b.session, bounds, kEpsilon);
    call<"div_.Tensor">(b.session, slope, bounds);
  }
  if (reduction(b) == Reduction::mean) call<"div_.Scalar">(b.session, slope, b("target").numel());
  return slope;
}

}  // namespace

Derivatives gelu_twice() {
  return {
      {{"grad_output"},
       {"self"},
       [](Backward& b) { return call<"gelu_backward">(b.session, b.grad(), b("self"), b["approximate"]); }},
      {{"self"}, {"grad_output", "self"}, [](Backward& b) { return gelu_of_self(b); }}};
}

Derivatives softplus_twice() {
  return {{{"grad_output"},
           {"self"},
           [](Backward& b) {
             return call<"softplus_backward">(b.session, b.grad(), b("self"), b["beta"], b["threshold"]);
           }},
          {{"self"}, {"grad_output", "self"}, [](Backward& b) { return softplus_of_self(b); }}};
}

Derivatives hardswish_twice() {
  return {{{"grad_output"},
           {"self"},
           [](Backward& b) { return call<"hardswish_backward">(b.session, b.grad(), b("self")); }},
          {{"self"}, {"grad_output", "self"}, [](Backward& b) { return hardswish_of_self(b); }}};
}

Derivatives elu_twice() {
  return {
      {{"grad_output"},
       {"self_or_result"},
       [](Backward& b) {
         return call<"elu_backward">(b.session, b.grad(), b["alpha"], b["scale"], b["input_scale"],
                                     b["is_result"], b("self_or_result"));
       }},
      {{"self_or_result"}, {"grad_output", "self_or_result"}, [](Backward& b) { return elu_of_self(b); }}};
}

Derivatives glu_twice() {
  return {{{"grad_output"}, {"self"}, [](Backward& b) { return glu_of_gradient(b); }},
          {{"self"}, {"grad_output", "self"}, [](Backward& b) { return glu_of_self(b); }}};
}

Derivatives rrelu_twice() {
  return {{{"grad_output"},
           {"self", "noise"},
           [](Backward& b) {
             return call<"rrelu_with_noise_backward">(b.session, b.grad(), b("self"), b("noise"), b["lower"],
                                                      b["upper"], b["training"], false);
           }},
          {{"self"}, {}, [](Backward& b) { return zeros_like(b.grad()); }}};
}

Derivatives log_sigmoid_twice() {
  return {
      {{"grad_output"},
       {"self", "buffer"},
       [](Backward& b) { return call<"log_sigmoid_backward">(b.session, b.grad(), b("self"), b("buffer")); }},
      {{"self"}, {"grad_output", "self"}, [](Backward& b) { return log_sigmoid_of_self(b); }}};
}

namespace {

Tensor zero_of(const Tensor& like) {
  return call<"zeros">(session_of(like), Sizes{}, like.dtype(), Value(), like.device());
}

Tensor prelu_of_gradient(Backward& b) {
  const Tensor &self = b("self"), &of_self = b.grad(0), &of_weight = b.grad(1);
  if (!of_self.defined()) {
    const Tensor below = of_weight * self, zero = zero_of(self);
    return where(ge(self, 0), zero, below);
  }
  Tensor below = of_self * b("weight");
  if (of_weight.defined()) below = below + of_weight * self;
  return where(ge(self, 0), of_self, below);
}

// The slope times what the other result asks for.
Tensor prelu_below(Backward& b, const Tensor& gradient) {
  const Tensor& self = b("self");
  if (!gradient.defined()) return zeros_like(self);
  const Tensor below = b("grad_output") * gradient, zero = zero_of(self);
  return where(ge(self, 0), zero, below);
}

}  // namespace

Derivatives prelu_twice() {
  return {{{"grad_output"}, {"self", "weight"}, [](Backward& b) { return prelu_of_gradient(b); }},
          {{"self"}, {"grad_output", "self"}, [](Backward& b) { return prelu_below(b, b.grad(1)); }},
          {{"weight"}, {"grad_output", "self"}, [](Backward& b) { return prelu_below(b, b.grad(0)); }}};
}

Derivatives mse_twice() {
  return {{{"grad_output"},
           {"self", "target"},
           [](Backward& b) {
             return call<"mse_loss_backward">(b.session, b.grad(), b("self"), b("target"), b["reduction"]);
           }},
          {{"self"}, {"grad_output"}, [](Backward& b) { return mse_slope(b); }},
          {{"target"}, {"grad_output"}, [](Backward& b) { return neg(mse_slope(b)); }}};
}

Derivatives smooth_l1_twice() {
  return {
      {{"grad_output"},
       {"self", "target"},
       [](Backward& b) {
         return call<"smooth_l1_loss_backward">(b.session, b.grad(), b("self"), b("target"), b["reduction"],
                                                b["beta"]);
       }},
      {{"self"}, {"grad_output", "self", "target"}, [](Backward& b) { return smooth_l1_slope(b); }},
      {{"target"}, {"grad_output", "self", "target"}, [](Backward& b) { return neg(smooth_l1_slope(b)); }}};
}

Derivatives huber_twice() {
  return {{{"grad_output"},
           {"grad_output", "self", "target"},
           [](Backward& b) { return of_reduced_gradient<huber_backward>(b); }},
          {{"self"}, {"grad_output", "self", "target"}, [](Backward& b) { return huber_slope(b); }},
          {{"target"}, {"grad_output", "self", "target"}, [](Backward& b) { return neg(huber_slope(b)); }}};
}

Derivatives soft_margin_twice() {
  return {{{"grad_output"},
           {"grad_output", "self", "target"},
           [](Backward& b) { return of_reduced_gradient<soft_margin_backward>(b); }},
          {{"self"}, {"grad_output", "self", "target"}, [](Backward& b) { return soft_margin_slope(b); }}};
}

Derivatives binary_cross_entropy_twice() {
  return {
      {{"grad_output"}, {"self", "target", "weight"}, [](Backward& b) { return entropy_of_gradient(b); }},
      {{"self"}, {"grad_output", "self", "target", "weight"}, [](Backward& b) { return entropy_of_self(b); }},
      {{"target"}, {"grad_output", "self", "target", "weight"}, [](Backward& b) {
         return entropy_of_target(b);
       }}};
}

}  // namespace metaprof
