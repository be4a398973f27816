#pragma once
// Operators as plain functions, for bodies and derivative formulas: `mul(grad, other)` is a dispatched call.

#include "meta/op/call.h"

namespace metaprof {

inline Session& session_of(const Tensor& tensor) { return tensor->storage->session(); }

inline Tensor add(const Tensor& a, Value b) { return call<"add.Tensor">(session_of(a), a, std::move(b)); }
inline Tensor sub(const Tensor& a, Value b) { return call<"sub.Tensor">(session_of(a), a, std::move(b)); }
inline Tensor mul(const Tensor& a, Value b) { return call<"mul.Tensor">(session_of(a), a, std::move(b)); }
inline Tensor div(const Tensor& a, Value b) { return call<"div.Tensor">(session_of(a), a, std::move(b)); }
inline Tensor neg(const Tensor& a) { return call<"neg">(session_of(a), a); }
inline Tensor pow(const Tensor& a, Value exponent) {
  return call<"pow.Tensor_Scalar">(session_of(a), a, std::move(exponent));
}

inline Tensor view(const Tensor& a, SizesView sizes) { return call<"view">(session_of(a), a, sizes); }
inline Tensor reshape(const Tensor& a, SizesView sizes) { return call<"reshape">(session_of(a), a, sizes); }
inline Tensor transpose(const Tensor& a, int64_t dim0, int64_t dim1) {
  return call<"transpose.int">(session_of(a), a, dim0, dim1);
}
inline Tensor t(const Tensor& a) { return call<"t">(session_of(a), a); }
inline Tensor expand(const Tensor& a, SizesView sizes) { return call<"expand">(session_of(a), a, sizes); }
inline Tensor unsqueeze(const Tensor& a, int64_t dim) { return call<"unsqueeze">(session_of(a), a, dim); }
inline Tensor permute(const Tensor& a, SizesView dims) { return call<"permute">(session_of(a), a, dims); }
inline Tensor as_strided(const Tensor& a, SizesView sizes, SizesView strides, int64_t offset) {
  return call<"as_strided">(session_of(a), a, sizes, strides, offset);
}
inline Tensor contiguous(const Tensor& a, MemoryFormat format = MemoryFormat::contiguous) {
  return call<"contiguous">(session_of(a), a, format);
}
inline Tensor clone(const Tensor& a, Value format = {}) {
  return call<"clone">(session_of(a), a, std::move(format));
}
inline Tensor to(const Tensor& a, DType dtype) { return call<"to.dtype">(session_of(a), a, dtype); }

inline Tensor sum(const Tensor& a) { return call<"sum">(session_of(a), a); }
inline Tensor sum(const Tensor& a, SizesView dims, bool keepdim) {
  return call<"sum.dim_IntList">(session_of(a), a, dims, keepdim);
}

inline Tensor mm(const Tensor& a, const Tensor& b) { return call<"mm">(session_of(a), a, b); }
inline Tensor bmm(const Tensor& a, const Tensor& b) { return call<"bmm">(session_of(a), a, b); }

inline Tensor mean(const Tensor& a) { return call<"mean">(session_of(a), a); }
inline Tensor mean(const Tensor& a, SizesView dims, bool keepdim) {
  return call<"mean.dim">(session_of(a), a, dims, keepdim);
}

inline Tensor exp(const Tensor& a) { return call<"exp">(session_of(a), a); }
inline Tensor log(const Tensor& a) { return call<"log">(session_of(a), a); }
inline Tensor abs(const Tensor& a) { return call<"abs">(session_of(a), a); }
inline Tensor sgn(const Tensor& a) { return call<"sgn">(session_of(a), a); }
inline Tensor isnan(const Tensor& a) { return call<"isnan">(session_of(a), a); }
inline Tensor mul_number(const Tensor& a, Value b) {
  return call<"mul.Scalar">(session_of(a), a, std::move(b));
}
inline Tensor div_number(const Tensor& a, Value b) {
  return call<"div.Scalar">(session_of(a), a, std::move(b));
}
inline Tensor eq(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"eq.Tensor">(session_of(a), a, std::move(b));
  return call<"eq.Scalar">(session_of(a), a, std::move(b));
}
inline Tensor eq_number(const Tensor& a, Value b) {
  return call<"eq.Scalar">(session_of(a), a, std::move(b));
}
inline Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return call<"where.self">(session_of(a), condition, a, b);
}
inline Tensor masked_fill_(const Tensor& a, const Tensor& mask, Value value) {
  return call<"masked_fill_.Scalar">(session_of(a), a, mask, std::move(value));
}
inline Tensor select(const Tensor& a, int64_t dim, int64_t index) {
  return call<"select.int">(session_of(a), a, dim, index);
}
inline Tensor squeeze(const Tensor& a, int64_t dim) { return call<"squeeze.dim">(session_of(a), a, dim); }
inline Tensor flip(const Tensor& a, int64_t dim) { return call<"flip">(session_of(a), a, Sizes{dim}); }
inline Tensor index_select(const Tensor& a, int64_t dim, const Tensor& index) {
  return call<"index_select">(session_of(a), a, dim, index);
}
inline Tensor gather(const Tensor& a, int64_t dim, const Tensor& index) {
  return call<"gather">(session_of(a), a, dim, index);
}
/// Zeros of this tensor's dtype and device.
inline Tensor zeros_of(const Tensor& a, SizesView sizes) {
  return call<"zeros">(session_of(a), sizes, a.dtype(), Value(), a.device());
}

inline Tensor empty_like(const Tensor& a) { return call<"empty_like">(session_of(a), a); }
inline Tensor zeros_like(const Tensor& a) { return call<"zeros_like">(session_of(a), a); }
inline Tensor copy_(const Tensor& to, const Tensor& from) { return call<"copy_">(session_of(to), to, from); }

}  // namespace metaprof
