// Products of Householder reflectors, as geqrf leaves them: H(1) · … · H(k), each I − τ · v · vᴴ
// (aten/src/ATen/native/cuda/linalg/BatchLinearAlgebra.cpp, orgqr_kernel; torch/csrc/autograd/FunctionsManual.cpp,
// householder_product_backward; recorded: `opinfo/linalg.householder_product`).

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/linear_algebra/matrices.h"
#include "meta/ops/rules/estimated.h"

namespace metaprof {
namespace {

void householder_meta(Call& c) {
  const Tensor &input = c.tensor("input"), &tau = c.tensor("tau");
  if (input.dim() < 2 || input.size(-2) < input.size(-1) || tau.dim() != input.dim() - 1 ||
      tau.size(-1) > input.size(-1))
    c.error(fmt::format("expects reflectors below the diagonal and a factor of each, got {} and {}",
                        describe(input), describe(tau)));
  c.output(input.sizes(), column_major(input.sizes()), input.dtype());
}

// cuSOLVER takes one matrix after the other, and says once how it went. Without reflectors the result is only filled.
void householder_cuda(Call& c) {
  c.allocate(0);
  if (c.tensor("tau").numel() > 0) const Tensor info = c.temporary(Sizes{1}, DType::i32);
}

// --- The gradient. Reflector i changes what lies from place i on.

Tensor from_row(const Tensor& a, int64_t first) { return narrow(a, -2, first, a.size(-2) - first); }
Tensor from_column(const Tensor& a, int64_t first) { return narrow(a, -1, first, a.size(-1) - first); }
void subtract(const Tensor& from, const Tensor& what) { call<"sub_.Tensor">(session_of(from), from, what); }

// K is changed in place, unless its history is needed (second derivatives, which were not recorded).
Tensor changeable(const Tensor& k) { return session_of(k).modes.grad ? clone(k) : k; }

// K = (I − factor · v · vᴴ) · K
void reflect_rows(Tensor& k, int64_t first, const Tensor& reflector, const Tensor& factor) {
  const Tensor v = from_row(reflector, first);
  const Tensor across = matmul(mH(v), from_row(k, first));
  const Tensor scaled = unsqueeze(factor, -1) * v;
  const Tensor change = scaled * across;
  k = changeable(k);
  subtract(from_row(k, first), change);
}

// K = K · (I − factor · v · vᴴ)
void reflect_columns(Tensor& k, int64_t first, const Tensor& reflector, const Tensor& factor) {
  const Tensor v = from_row(reflector, first);
  Tensor along;
  {
    const Tensor scaled = unsqueeze(factor, -1) * v;
    along = matmul(from_column(k, first), scaled);
  }
  const Tensor change = along * mH(v);
  k = changeable(k);
  subtract(from_column(k, first), change);
}

struct ReflectorGradient {
  Tensor factor, reflector;  // they go in the other order
};

ReflectorGradient gradient_of(const Tensor& k, int64_t first, const Tensor& reflector, const Tensor& factor) {
  const Tensor v = from_row(reflector, first);
  const Tensor across = matmul(mH(v), from_row(k, first));
  const Tensor along = matmul(from_column(k, first), v);
  const Tensor scale = unsqueeze(factor, -1);
  ReflectorGradient made;
  {
    const Tensor of_along = scale * along;
    const Tensor less = neg(scale);
    const Tensor of_across = less * across;
    made.reflector = unsqueeze(squeeze(of_across, -2) - squeeze(of_along, -1), -1);
  }
  const Tensor both = matmul(from_column(across, first), v);
  made.factor = squeeze(neg(both), -1);
  return made;
}

// householder_product_backward; `backwards`: from the last reflector to the first (its flip_order).
Gradients reflector_gradients(const Tensor& grad, const Tensor& result, const Tensor& input,
                              const Tensor& tau, bool backwards) {
  const int64_t count = tau.size(-1);
  if (input.numel() == 0 || count == 0) return {Tensor(), Tensor()};
  Session& s = session_of(input);
  const Tensor reflectors = tril(input, -1);
  call<"fill_.Scalar">(s, call<"diagonal">(s, reflectors, 0, -2, -1), 1.0);
  const Tensor first = narrow(reflectors, -1, 0, count);
  Tensor lengths;
  {
    const Tensor squares = first * first;
    lengths = sum(squares, Sizes{-2}, false);
  }
  // The factor of a reflector's inverse.
  Tensor inverse;
  {
    const Tensor product = tau * lengths;
    const Tensor less = product - Number(1.0);
    inverse = tau / less;
  }
  Tensor k = matmul(result, mH(grad));
  const auto reflector = [&](int64_t i) { return narrow(reflectors, -1, i, 1); };
  const auto of = [&](const Tensor& factors, int64_t i) { return narrow(factors, -1, i, 1); };
  const auto place = [&](int64_t i) { return backwards ? count - 1 - i : i; };
  if (backwards)
    reflect_columns(k, place(0), reflector(place(0)), of(inverse, place(0)));
  else
    reflect_rows(k, 0, reflector(0), of(inverse, 0));
  const Tensor of_input = zeros_like(input), of_tau = zeros_like(tau);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t now = place(i), next = place(i + 1);
    const ReflectorGradient gradient = gradient_of(k, now, reflector(now), of(tau, now));
    copy_(select(of_input, -1, now), squeeze(gradient.reflector, -1));
    copy_(select(of_tau, -1, now), squeeze(gradient.factor, -1));
    if (i + 1 == count) break;
    if (backwards) {
      reflect_columns(k, next, reflector(next), of(inverse, next));
      reflect_rows(k, now, reflector(now), of(tau, now));
    } else {
      reflect_rows(k, next, reflector(next), of(inverse, next));
      reflect_columns(k, now, reflector(now), of(tau, now));
    }
  }
  return {call<"tril_">(s, of_input, -1), of_tau};
}

Gradients householder_gradients(Backward& b) {
  if (!b.grad().defined()) return {Tensor(), Tensor()};
  return reflector_gradients(b.grad(), b("result"), b("input"), b("tau"), false);
}

// --- Products of the reflectors with a matrix

void ormqr_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &tau = c.tensor("input2"), &other = c.tensor("input3");
  const int64_t side = c.boolean("left") ? -2 : -1;
  if (self.dim() < 2 || other.dim() != self.dim() || tau.dim() != self.dim() - 1 ||
      other.size(side) != self.size(-2) || tau.size(-1) > self.size(-1))
    c.error(fmt::format("expects reflectors, a factor of each and a matrix of their size, got {}, {} and {}",
                        describe(self), describe(tau), describe(other)));
  c.output(other.sizes(), column_major(other.sizes()), other.dtype());
}

// BatchLinearAlgebra.cpp, ormqr_helper: reflectors by columns; cuSOLVER says how it went. What it takes is known to it alone.
void ormqr_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate(0);
  Tensor by_columns, scales;
  if (!is_column_major(self)) by_columns = clone(mT(self), MemoryFormat::contiguous);
  if (!c.tensor("input2").is_contiguous()) scales = contiguous(c.tensor("input2"));
  const Tensor info = c.temporary(Sizes{1}, DType::i32);
  estimated(c.session, c.session.allocate(c.device(), 0, Category::workspace));
}

// FunctionsManual.cpp, ormqr_backward: its own gradients, and those of the reflectors in one of two orders.
Gradients ormqr_gradients(Backward& b) {
  const Tensor& grad = b.grad();
  if (!grad.defined()) return {Tensor(), Tensor(), Tensor()};
  const bool left = b.boolean("left"), transpose = b.boolean("transpose");
  const Tensor &self = b("self"), &tau = b("input2"), &result = b("result");
  Tensor of_other;
  if (b.wants("input3")) of_other = call<"ormqr">(b.session, self, tau, grad, left, !transpose);
  if (!b.wants("self") && !b.wants("input2")) return {Tensor(), Tensor(), of_other};
  const Tensor grad_here = left ? grad : mH(grad), result_here = left ? result : mH(result);
  const Gradients made = left != transpose ? reflector_gradients(grad_here, result_here, self, tau, false)
                                           : reflector_gradients(result_here, grad_here, self, tau, true);
  return {made[0], made[1], of_other};
}

constexpr Op kHouseholder[] = {
    {.schema = "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
     .summary = "the first columns of a product of reflectors",
     .meta = householder_meta,
     .host_code = {{DeviceType::cuda, householder_cuda}},
     .derivatives = {{{"input", "tau"}, {"input", "result", "tau"}, householder_gradients}},
     .flops = cubic_flops<2>,
     .examples = {"f32[5,3] f32[3]", "f32[2,4,4] f32[2,4]"}},
    {.schema =
         "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
     .summary = "a product of reflectors, times a matrix",
     .meta = ormqr_meta,
     .host_code = {{DeviceType::cuda, ormqr_cuda}},
     .derivatives = {{{"self", "input2", "input3"}, {"input2", "input3", "result", "self"}, ormqr_gradients}},
     .flops = [](const Call& c) -> FlopCount {
       const Tensor& other = c.tensor("input3");
       return {.own = 4 * other.numel() * c.tensor("input2").size(-1)};
     },
     .examples = {"f32[5,3] f32[3] f32[5,2]", "f32[5,3] f32[3] f32[2,5] False True",
                  "f32[2,4,4] f32[2,4] f32[2,4,3] True True"}}};

}  // namespace

Tables householder_operators() {
  static constexpr Records tables[] = {kHouseholder};
  return tables;
}

}  // namespace metaprof
