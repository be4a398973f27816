#pragma once
// Tensors in formulas as in maths: `grad * exp(b("self"))` is two dispatched calls.
//
// The framework's own formulas are C++ expressions, whose operands GCC evaluates from right to left
// (recorded: binary/f32/div). Where both operands of a formula are calls, the right one is therefore made
// first, under a name; names die in reverse order, as the framework's temporaries do.

#include "meta/ops/functions.h"

namespace metaprof {

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }

template <class Number>
concept PlainNumber = std::same_as<Number, int> || std::same_as<Number, int64_t> ||
    std::same_as<Number, double> || std::same_as<Number, Value>;

template <PlainNumber Number>
Tensor operator+(const Tensor& a, const Number& number) {
  return call<"add.Scalar">(session_of(a), a, Value(number));
}
template <PlainNumber Number>
Tensor operator-(const Tensor& a, const Number& number) {
  return call<"sub.Scalar">(session_of(a), a, Value(number));
}
template <PlainNumber Number>
Tensor operator*(const Tensor& a, const Number& number) {
  return call<"mul.Scalar">(session_of(a), a, Value(number));
}
template <PlainNumber Number>
Tensor operator/(const Tensor& a, const Number& number) {
  return call<"div.Scalar">(session_of(a), a, Value(number));
}
template <PlainNumber Number>
Tensor operator+(const Number& number, const Tensor& a) {
  return call<"add.Scalar">(session_of(a), a, Value(number));
}
template <PlainNumber Number>
Tensor operator*(const Number& number, const Tensor& a) {
  return call<"mul.Scalar">(session_of(a), a, Value(number));
}
// ATen/TensorOperators.h: a tensor full of the number, then in place.
template <PlainNumber Number>
Tensor operator-(const Number& number, const Tensor& a) {
  const Tensor full = call<"fill_.Scalar">(session_of(a), empty_like(a), Value(number));
  return call<"sub_.Tensor">(session_of(a), full, a);
}
template <PlainNumber Number>
Tensor operator/(const Number& number, const Tensor& a) {
  const Tensor full = call<"fill_.Scalar">(session_of(a), empty_like(a), Value(number));
  return call<"div_.Tensor">(session_of(a), full, a);
}

inline Tensor sin(const Tensor& a) { return call<"sin">(session_of(a), a); }
inline Tensor cos(const Tensor& a) { return call<"cos">(session_of(a), a); }
inline Tensor sqrt(const Tensor& a) { return call<"sqrt">(session_of(a), a); }
inline Tensor rsqrt(const Tensor& a) { return call<"rsqrt">(session_of(a), a); }

inline Tensor ne(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"ne.Tensor">(session_of(a), a, std::move(b));
  return call<"ne.Scalar">(session_of(a), a, std::move(b));
}
inline Tensor lt(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"lt.Tensor">(session_of(a), a, std::move(b));
  return call<"lt.Scalar">(session_of(a), a, std::move(b));
}
inline Tensor le(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"le.Tensor">(session_of(a), a, std::move(b));
  return call<"le.Scalar">(session_of(a), a, std::move(b));
}
inline Tensor gt(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"gt.Tensor">(session_of(a), a, std::move(b));
  return call<"gt.Scalar">(session_of(a), a, std::move(b));
}
inline Tensor ge(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"ge.Tensor">(session_of(a), a, std::move(b));
  return call<"ge.Scalar">(session_of(a), a, std::move(b));
}

inline Tensor logical_and(const Tensor& a, const Tensor& b) {
  return call<"logical_and">(session_of(a), a, b);
}
inline Tensor masked_fill(const Tensor& a, const Tensor& mask, Value value) {
  return call<"masked_fill.Scalar">(session_of(a), a, mask, std::move(value));
}
/// A number as a tensor of the same dtype and on the same device.
inline Tensor scalar_like(const Tensor& a, Value number) {
  return call<"scalar_tensor">(session_of(a), std::move(number), a.dtype(), Value(), a.device());
}

/// a · factor, or a itself if the factor is 1 (maybe_multiply).
inline Tensor scaled(const Tensor& a, const Value& factor) {
  return factor.kind() != Value::Kind::complex && factor.real() == 1 ? a : a * factor;
}
/// The gradient of a real argument is real (handle_r_to_c).
inline Tensor real_if(const Tensor& gradient, DType of) {
  if (is_complex(of) || !is_complex(gradient.dtype())) return gradient;
  return call<"real">(session_of(gradient), gradient);
}

}  // namespace metaprof
