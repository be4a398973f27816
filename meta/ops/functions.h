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

inline Tensor zeros_like(const Tensor& a) { return call<"zeros_like">(session_of(a), a); }
inline Tensor copy_(const Tensor& to, const Tensor& from) { return call<"copy_">(session_of(to), to, from); }

}  // namespace metaprof
