#pragma once
// Tensors in bodies and formulas as in maths: `grad * exp(b("self"))` is two dispatched calls. Functions have
// the framework's names. What is not here is called by its full name: `call<"cumsum">(session, …)`.
//
// The framework's own formulas are C++ expressions, whose operands GCC evaluates from right to left
// (recorded: binary/f32/div). Where both operands of a formula are calls, the right one is therefore made
// first, under a name; names die in reverse order, as the framework's temporaries do.

#include "meta/session/call.h"

namespace metaprof {

/// A plain number beside a tensor; a call with it is one of the `.Scalar` overloads.
struct Number {
  Number(int number) : value(number) {}
  Number(int64_t number) : value(number) {}
  Number(double number) : value(number) {}
  Number(const Value& number) : value(number) {}
  Value value;
};

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, const Number& number);
Tensor operator-(const Tensor& a, const Number& number);
Tensor operator*(const Tensor& a, const Number& number);
Tensor operator/(const Tensor& a, const Number& number);
Tensor operator+(const Number& number, const Tensor& a);
Tensor operator*(const Number& number, const Tensor& a);
/// A number before a tensor: memory like the tensor's, filled, then changed in place (ATen/TensorOperators.h).
Tensor operator-(const Number& number, const Tensor& a);
Tensor operator/(const Number& number, const Tensor& a);
Tensor operator-(const Tensor& a);

// With a wrapped number where `b` is a number (the `.Tensor` overloads).
Tensor add(const Tensor& a, Value b);
Tensor sub(const Tensor& a, Value b);
Tensor mul(const Tensor& a, Value b);
Tensor div(const Tensor& a, Value b);
/// a · factor, or a itself if the factor is 1 (FunctionsManual.cpp, maybe_multiply).
Tensor scaled(const Tensor& a, const Value& factor);

// Functions of each element.
Tensor neg(const Tensor& a);
Tensor pow(const Tensor& a, Value exponent);
Tensor exp(const Tensor& a);
Tensor log(const Tensor& a);
Tensor abs(const Tensor& a);
Tensor sgn(const Tensor& a);
Tensor sin(const Tensor& a);
Tensor cos(const Tensor& a);
Tensor sqrt(const Tensor& a);
Tensor rsqrt(const Tensor& a);
Tensor sigmoid(const Tensor& a);
Tensor isnan(const Tensor& a);
Tensor real(const Tensor& a);
/// The gradient of a real argument is real (handle_r_to_c).
Tensor real_if(const Tensor& gradient, DType of);

// Comparisons with a tensor or a number, and choices.
Tensor eq(const Tensor& a, Value b);
Tensor ne(const Tensor& a, Value b);
Tensor lt(const Tensor& a, Value b);
Tensor le(const Tensor& a, Value b);
Tensor gt(const Tensor& a, Value b);
Tensor ge(const Tensor& a, Value b);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor masked_fill(const Tensor& a, const Tensor& mask, Value value);
Tensor masked_fill_(const Tensor& a, const Tensor& mask, Value value);

// Views.
Tensor view(const Tensor& a, SizesView sizes);
Tensor reshape(const Tensor& a, SizesView sizes);
Tensor transpose(const Tensor& a, int64_t dim0, int64_t dim1);
Tensor t(const Tensor& a);
Tensor mT(const Tensor& a);  // NOLINT(readability-identifier-naming): the framework's name
Tensor mH(const Tensor& a);  // NOLINT(readability-identifier-naming): the framework's name
Tensor expand(const Tensor& a, SizesView sizes);
Tensor unsqueeze(const Tensor& a, int64_t dim);
Tensor squeeze(const Tensor& a, int64_t dim);
Tensor permute(const Tensor& a, SizesView dims);
Tensor as_strided(const Tensor& a, SizesView sizes, SizesView strides, int64_t offset);
Tensor select(const Tensor& a, int64_t dim, int64_t index);
Tensor slice(const Tensor& a, int64_t dim, Value start, Value end);
Tensor narrow(const Tensor& a, int64_t dim, int64_t start, int64_t length);

// Copies.
Tensor contiguous(const Tensor& a, MemoryFormat format = MemoryFormat::contiguous);
Tensor clone(const Tensor& a, Value format = {});
Tensor to(const Tensor& a, DType dtype);
Tensor copy_(const Tensor& to, const Tensor& from);
Tensor cat(Value::Tensors parts, int64_t dim);
Tensor flip(const Tensor& a, int64_t dim);
Tensor index_select(const Tensor& a, int64_t dim, const Tensor& index);
Tensor gather(const Tensor& a, int64_t dim, const Tensor& index);

// Sums and products.
Tensor sum(const Tensor& a);
Tensor sum(const Tensor& a, SizesView dims, bool keepdim);
Tensor mean(const Tensor& a);
Tensor mean(const Tensor& a, SizesView dims, bool keepdim);
Tensor mm(const Tensor& a, const Tensor& b);
Tensor bmm(const Tensor& a, const Tensor& b);
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor triu(const Tensor& a, int64_t diagonal = 0);
Tensor tril(const Tensor& a, int64_t diagonal = 0);

// New tensors of `a`'s dtype and on its device.
Tensor empty_like(const Tensor& a);
Tensor zeros_like(const Tensor& a);
Tensor ones_like(const Tensor& a);
Tensor zeros_of(const Tensor& a, SizesView sizes);
Tensor ones_of(const Tensor& a, SizesView sizes);
/// A number as a tensor without dimensions.
Tensor scalar_like(const Tensor& a, Value number);

}  // namespace metaprof
