// Products with frozen weights of 4 or 8 bits: the autograd functions of bitsandbytes 0.50 (autograd/_functions.py,
// backends/cuda/ops.py, backends/default/ops.py), each as one operator under the name of its class.

#include "meta/autograd/engine/backward.h"
#include "meta/ops/products/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

constexpr int64_t kBlock = 64;  // elements of a weight that share a scale
constexpr int64_t kMostRowsFused =
    4;  // _GEMM_4BIT_CUSTOM_FLOOR_M: on every card the weight is never written out

struct Product {
  int64_t rows, columns, inner;
};

Product four_bit_product(const Call& c) {
  const Tensor& a = c.tensor("A");
  if (a.dim() == 0 || a.size(-1) == 0) c.error("expects rows of at least one element");
  return {a.numel() / a.size(-1), 2 * c.tensor("B").numel() / a.size(-1), a.size(-1)};
}

Product eight_bit_product(const Call& c) {
  const Tensor &a = c.tensor("A"), &weight = c.tensor("CB");
  if (a.dim() == 0 || weight.dim() != 2 || a.size(-1) != weight.size(1) || a.size(-1) == 0)
    c.error("expects rows as long as those of the weight, of at least one element");
  return {a.numel() / weight.size(1), weight.size(0), weight.size(1)};
}

Sizes sizes_of_product(const Tensor& a, int64_t columns) {
  Sizes sizes = a.sizes();
  sizes.back() = columns;
  return sizes;
}

// The counter of 2.11 has no formula; it is one product as any other.
template <Product (*product_of)(const Call&)>
FlopCount product_flops(const Call& c) {
  const Product product = product_of(c);
  return {.counted = multiply(multiply(2, product.rows), multiply(product.columns, product.inner))};
}

// Scales that are kept in 8 bits, with a scale of their own for each 256, as numbers of 32 bits.
Tensor scales(Session& session, const Tensor& absmax, const Tensor& narrow) {
  return call<"empty_like">(session, narrow.defined() ? narrow : absmax, DType::f32);
}

// _gemm_4bit_use_custom_cuda chooses by the card between a kernel that reads 4 bits and a copy of the weight in 16 or 32
// bits. Up to 4 rows it is the kernel on every card; above, the copy is assumed, which takes more.
void four_bit_on_cuda(Call& c) {
  const Tensor& a = c.tensor("A");
  const Product product = four_bit_product(c);
  if (product.rows <= kMostRowsFused && product.inner % kBlock == 0) return c.allocate(0);
  Tensor wide;
  if (c.given("absmax_8bit")) {
    const Tensor products = scales(c.session, c.tensor("absmax"), c.tensor("absmax_8bit"));
    wide = products + c.tensor("absmax_offset");
  }
  const Tensor weight = c.temporary(Sizes{product.columns, product.inner}, a.dtype());
  c.adopt(0, call<"linear">(c.session, a, weight, c["bias"]));
}

// MatMul4Bit.backward: the weight is written out again.
Gradients four_bit_backward(Backward& b) {
  Tensor wide;
  if (b("absmax_8bit").defined()) {
    wide = scales(b.session, b("absmax"), b("absmax_8bit"));
    (void)call<"add_.Tensor">(b.session, wide, b("absmax_offset"));
  }
  const int64_t columns = b.grad().size(-1), inner = b.sizes("A").back();
  const DType dtype = static_cast<DType>(b.integer("dtype"));
  const Tensor written =
      call<"empty.memory_format">(b.session, Sizes{columns, inner}, dtype, Value(), b.grad().device());
  wide = {};
  return {call<"matmul">(b.session, b.grad(), call<"to.dtype">(b.session, written, b.grad().dtype()))};
}

// MatMul8bitLt.forward: rows of A in 8 bits with a scale each, a product in integers, and back. Elements above the
// threshold are looked for, and none is taken to be found.
void eight_bit_on_cuda(Call& c) {
  const Tensor& a = c.tensor("A");
  const Product product = eight_bit_product(c);
  const Sizes rows{product.rows, product.inner}, results{product.rows, product.columns};
  Tensor half = a.dtype() == DType::f16 ? a : c.temporary(rows, DType::f16);
  const Tensor row_scales = c.temporary(Sizes{product.rows}, DType::f32);
  const Tensor narrow = c.temporary(rows, DType::i8);
  if (c.real("threshold") > 0) {
    const Tensor outliers = call<"ge.Scalar">(c.session, call<"abs">(c.session, half), c["threshold"]);
    (void)call<"any">(c.session, outliers);
  }
  half = {};
  const Tensor integers = c.temporary(results, DType::i32);
  if (a.dtype() == DType::f16) return c.allocate(0);
  const Tensor halves = c.temporary(results, DType::f16);
  c.allocate(0);
}

// MatMul8bitLt.backward: the weight in the dtype of the gradient.
void eight_bit_backward(Call& c) {
  const Tensor& grad = c.tensor("grad");
  Sizes sizes = grad.sizes();
  sizes.back() = c.tensor("CB").size(1);
  const Tensor rows =
      call<"contiguous">(c.session, call<"reshape">(c.session, grad, Sizes{-1, grad.size(-1)}));
  const Tensor weight = call<"to.dtype">(c.session, c["CB"], grad.dtype(), false, true);
  {
    const Tensor scales = call<"unsqueeze">(c.session, c["SCB"], 1);
    (void)call<"mul_.Tensor">(c.session, weight, mul(scales, Value(1.0 / 127)));
  }
  c.result(call<"view">(c.session, call<"matmul">(c.session, rows, weight), sizes));
}

Gradients bias_backward(Backward& b) {
  Sizes outer;
  for (int64_t d = 0; d + 1 < b.grad().dim(); ++d) outer.push_back(d);
  return {call<"sum.dim_IntList">(b.session, b.grad(), outer, false, b.dtype("bias"))};
}

constexpr Op kFewBits[] = {
    {.schema =
         "bitsandbytes::MatMul4Bit(Tensor A, Tensor B, Tensor absmax, ScalarType dtype, Tensor? bias=None, "
         "Tensor? absmax_8bit=None, Tensor? absmax_code=None, Tensor? absmax_offset=None) -> Tensor",
     .summary = "A · weightᵀ + bias; the weight has two elements in a byte, a scale for each 64",
     .meta =
         [](Call& c) {
           c.output(sizes_of_product(c.tensor("A"), four_bit_product(c).columns), c.tensor("A").dtype());
         },
     .host_code = {{DeviceType::cuda, four_bit_on_cuda}},
     .derivatives = {{{"A"},
                      {"B", "absmax", "absmax_8bit", "absmax_code", "absmax_offset"},
                      four_bit_backward},
                     {{"bias"}, {}, bias_backward}},
     .flops = product_flops<four_bit_product>,
     .examples = {"f32[2,3,64] u8[128,1] f32[4] 6",
                  "f32[2,3,64] u8[128,1] f32[1] 6 f32[4] u8[4] f32[256] f32[]"},
     .facts = {.node = "MatMul4BitBackward", .product = true}},
    {.schema = "bitsandbytes::MatMul8bitLt(Tensor A, Tensor CB, Tensor SCB, Tensor? bias=None, float "
               "threshold=6.0) -> Tensor",
     .summary = "A · weightᵀ + bias in integers of 8 bits; weight and A have a scale for each row",
     .meta =
         [](Call& c) {
           c.output(sizes_of_product(c.tensor("A"), eight_bit_product(c).columns), c.tensor("A").dtype());
         },
     .host_code = {{DeviceType::cuda, eight_bit_on_cuda}},
     .derivatives = not_differentiable,  // a function of the program has it (program/edits/base_weights.cpp)
     .flops = product_flops<eight_bit_product>,
     .examples = {"f32[2,3,4] i8[5,4] f32[5]"},
     .facts = {.product = true}},
    composite_of("bitsandbytes::MatMul8bitLt_backward(Tensor grad, Tensor CB, Tensor SCB) -> Tensor",
                 "grad · weight, which is written out", eight_bit_backward, {"f32[2,3,5] i8[5,4] f32[5]"},
                 {.takes = "grad.dim > 0, CB.dim == 2, SCB.dim == 1"})};

}  // namespace

Tables few_bits_operators() {
  static constexpr Records tables[] = {kFewBits};
  return tables;
}

}  // namespace metaprof
