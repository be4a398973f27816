#include "meta/ops/rules/formulas.h"

namespace metaprof {

Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
Tensor operator+(const Tensor& a, const Number& number) {
  return call<"add.Scalar">(session_of(a), a, number.value);
}
Tensor operator-(const Tensor& a, const Number& number) {
  return call<"sub.Scalar">(session_of(a), a, number.value);
}
Tensor operator*(const Tensor& a, const Number& number) {
  return call<"mul.Scalar">(session_of(a), a, number.value);
}
Tensor operator/(const Tensor& a, const Number& number) {
  return call<"div.Scalar">(session_of(a), a, number.value);
}
Tensor operator+(const Number& number, const Tensor& a) { return a + number; }
Tensor operator*(const Number& number, const Tensor& a) { return a * number; }
Tensor operator-(const Number& number, const Tensor& a) {
  const Tensor full = call<"fill_.Scalar">(session_of(a), empty_like(a), number.value);
  return call<"sub_.Tensor">(session_of(a), full, a);
}
Tensor operator/(const Number& number, const Tensor& a) {
  const Tensor full = call<"fill_.Scalar">(session_of(a), empty_like(a), number.value);
  return call<"div_.Tensor">(session_of(a), full, a);
}
Tensor operator-(const Tensor& a) { return neg(a); }

Tensor add(const Tensor& a, Value b) { return call<"add.Tensor">(session_of(a), a, std::move(b)); }
Tensor sub(const Tensor& a, Value b) { return call<"sub.Tensor">(session_of(a), a, std::move(b)); }
Tensor mul(const Tensor& a, Value b) { return call<"mul.Tensor">(session_of(a), a, std::move(b)); }
Tensor div(const Tensor& a, Value b) { return call<"div.Tensor">(session_of(a), a, std::move(b)); }

Tensor scaled(const Tensor& a, const Value& factor) {
  return factor.kind() != Value::Kind::complex && factor.real() == 1 ? a : a * factor;
}

Tensor neg(const Tensor& a) { return call<"neg">(session_of(a), a); }
Tensor exp(const Tensor& a) { return call<"exp">(session_of(a), a); }
Tensor log(const Tensor& a) { return call<"log">(session_of(a), a); }
Tensor abs(const Tensor& a) { return call<"abs">(session_of(a), a); }
Tensor sgn(const Tensor& a) { return call<"sgn">(session_of(a), a); }
Tensor sin(const Tensor& a) { return call<"sin">(session_of(a), a); }
Tensor cos(const Tensor& a) { return call<"cos">(session_of(a), a); }
Tensor sqrt(const Tensor& a) { return call<"sqrt">(session_of(a), a); }
Tensor rsqrt(const Tensor& a) { return call<"rsqrt">(session_of(a), a); }
Tensor sigmoid(const Tensor& a) { return call<"sigmoid">(session_of(a), a); }
Tensor isnan(const Tensor& a) { return call<"isnan">(session_of(a), a); }
Tensor real(const Tensor& a) { return call<"real">(session_of(a), a); }
Tensor pow(const Tensor& a, Value exponent) {
  return call<"pow.Tensor_Scalar">(session_of(a), a, std::move(exponent));
}
Tensor real_if(const Tensor& gradient, DType of) {
  return is_complex(of) || !is_complex(gradient.dtype()) ? gradient : real(gradient);
}

Tensor eq(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"eq.Tensor">(session_of(a), a, std::move(b));
  return call<"eq.Scalar">(session_of(a), a, std::move(b));
}
Tensor ne(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"ne.Tensor">(session_of(a), a, std::move(b));
  return call<"ne.Scalar">(session_of(a), a, std::move(b));
}
Tensor lt(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"lt.Tensor">(session_of(a), a, std::move(b));
  return call<"lt.Scalar">(session_of(a), a, std::move(b));
}
Tensor le(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"le.Tensor">(session_of(a), a, std::move(b));
  return call<"le.Scalar">(session_of(a), a, std::move(b));
}
Tensor gt(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"gt.Tensor">(session_of(a), a, std::move(b));
  return call<"gt.Scalar">(session_of(a), a, std::move(b));
}
Tensor ge(const Tensor& a, Value b) {
  if (b.is_tensor()) return call<"ge.Tensor">(session_of(a), a, std::move(b));
  return call<"ge.Scalar">(session_of(a), a, std::move(b));
}
Tensor logical_and(const Tensor& a, const Tensor& b) { return call<"logical_and">(session_of(a), a, b); }
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return call<"where.self">(session_of(a), condition, a, b);
}
Tensor masked_fill(const Tensor& a, const Tensor& mask, Value value) {
  return call<"masked_fill.Scalar">(session_of(a), a, mask, std::move(value));
}
Tensor masked_fill_(const Tensor& a, const Tensor& mask, Value value) {
  return call<"masked_fill_.Scalar">(session_of(a), a, mask, std::move(value));
}

Tensor view(const Tensor& a, SizesView sizes) { return call<"view">(session_of(a), a, sizes); }
Tensor reshape(const Tensor& a, SizesView sizes) { return call<"reshape">(session_of(a), a, sizes); }
Tensor transpose(const Tensor& a, int64_t dim0, int64_t dim1) {
  return call<"transpose.int">(session_of(a), a, dim0, dim1);
}
Tensor t(const Tensor& a) { return call<"t">(session_of(a), a); }
Tensor mT(const Tensor& a) { return call<"mT">(session_of(a), a); }
Tensor mH(const Tensor& a) { return call<"mH">(session_of(a), a); }
Tensor expand(const Tensor& a, SizesView sizes) { return call<"expand">(session_of(a), a, sizes); }
Tensor unsqueeze(const Tensor& a, int64_t dim) { return call<"unsqueeze">(session_of(a), a, dim); }
Tensor squeeze(const Tensor& a, int64_t dim) { return call<"squeeze.dim">(session_of(a), a, dim); }
Tensor permute(const Tensor& a, SizesView dims) { return call<"permute">(session_of(a), a, dims); }
Tensor as_strided(const Tensor& a, SizesView sizes, SizesView strides, int64_t offset) {
  return call<"as_strided">(session_of(a), a, sizes, strides, offset);
}
Tensor select(const Tensor& a, int64_t dim, int64_t index) {
  return call<"select.int">(session_of(a), a, dim, index);
}
Tensor slice(const Tensor& a, int64_t dim, Value start, Value end) {
  return call<"slice.Tensor">(session_of(a), a, dim, std::move(start), std::move(end));
}
Tensor narrow(const Tensor& a, int64_t dim, int64_t start, int64_t length) {
  return call<"narrow">(session_of(a), a, dim, start, length);
}

Tensor contiguous(const Tensor& a, MemoryFormat format) {
  return call<"contiguous">(session_of(a), a, format);
}
Tensor clone(const Tensor& a, Value format) { return call<"clone">(session_of(a), a, std::move(format)); }
Tensor to(const Tensor& a, DType dtype) { return call<"to.dtype">(session_of(a), a, dtype); }
Tensor copy_(const Tensor& to, const Tensor& from) { return call<"copy_">(session_of(to), to, from); }
Tensor cat(Value::Tensors parts, int64_t dim) {
  Session& session = session_of(parts[0]);
  return call<"cat">(session, std::move(parts), dim);
}
Tensor flip(const Tensor& a, int64_t dim) { return call<"flip">(session_of(a), a, Sizes{dim}); }
Tensor index_select(const Tensor& a, int64_t dim, const Tensor& index) {
  return call<"index_select">(session_of(a), a, dim, index);
}
Tensor gather(const Tensor& a, int64_t dim, const Tensor& index) {
  return call<"gather">(session_of(a), a, dim, index);
}

Tensor sum(const Tensor& a) { return call<"sum">(session_of(a), a); }
Tensor sum(const Tensor& a, SizesView dims, bool keepdim) {
  return call<"sum.dim_IntList">(session_of(a), a, dims, keepdim);
}
Tensor mean(const Tensor& a) { return call<"mean">(session_of(a), a); }
Tensor mean(const Tensor& a, SizesView dims, bool keepdim) {
  return call<"mean.dim">(session_of(a), a, dims, keepdim);
}
Tensor mm(const Tensor& a, const Tensor& b) { return call<"mm">(session_of(a), a, b); }
Tensor bmm(const Tensor& a, const Tensor& b) { return call<"bmm">(session_of(a), a, b); }
Tensor matmul(const Tensor& a, const Tensor& b) { return call<"matmul">(session_of(a), a, b); }
Tensor triu(const Tensor& a, int64_t diagonal) { return call<"triu">(session_of(a), a, diagonal); }
Tensor tril(const Tensor& a, int64_t diagonal) { return call<"tril">(session_of(a), a, diagonal); }

Tensor empty_like(const Tensor& a) { return call<"empty_like">(session_of(a), a); }
Tensor zeros_like(const Tensor& a) { return call<"zeros_like">(session_of(a), a); }
Tensor ones_like(const Tensor& a) { return call<"ones_like">(session_of(a), a); }
Tensor zeros_of(const Tensor& a, SizesView sizes) {
  return call<"zeros">(session_of(a), sizes, a.dtype(), Value(), a.device());
}
Tensor ones_of(const Tensor& a, SizesView sizes) {
  return call<"ones">(session_of(a), sizes, a.dtype(), Value(), a.device());
}
Tensor scalar_like(const Tensor& a, Value number) {
  return call<"scalar_tensor">(session_of(a), std::move(number), a.dtype(), Value(), a.device());
}

}  // namespace metaprof
