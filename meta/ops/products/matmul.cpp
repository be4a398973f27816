// Matrix products and what is made of them.

#include "meta/ops/products/matmul.h"

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/autograd/graph/state.h"
#include "meta/op/versions.h"
#include "meta/ops/products/family.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/into_out.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/library.h"
#include "meta/ops/sparse/sparse.h"
#include "meta/platform/platform.h"

namespace metaprof {

bool blas_takes(const Tensor& m) {
  const int64_t rows = m.size(-2), columns = m.size(-1);
  const int64_t down = m.strides()[m.strides().size() - 2], across = m.strides().back();
  return (across == 1 && down >= std::max<int64_t>(1, columns)) ||
         (down == 1 && across >= std::max<int64_t>(1, rows));
}

namespace {

// As there: whether cuBLAS, which counts by columns, writes the matrix as it is and not its transpose.
bool lies_by_columns(const Tensor& m) {
  if (m->dense) return !m->contiguous;
  return m.strides()[0] == 1 && m.strides()[1] >= std::max<int64_t>(1, m.size(0));
}

// As there: dense matrices are taken as they are, whatever the strides of dimensions of size 1. cuBLAS conjugates what
// it transposes, so a matrix that is marked as a conjugate is copied if it does not lie across the result.
Tensor blas_operand(Call& c, const Tensor& m, const Tensor& result) {
  if (!m->dense && !blas_takes(m)) return c.contiguous(m);
  return m->marks && lies_by_columns(m) == lies_by_columns(result) ? clone(m) : m;
}

// native/cuda/Blas.cpp, prepare_batch_matrix_for_cublas: also takes what is contiguous because dimensions are
// of size 1, but no steps of 0. Conjugates are copied as above.
Tensor batched_operand(const Tensor& m, bool result_by_columns) {
  const bool steps = m.strides()[1] != 0 && m.strides()[2] != 0;
  if (!blas_takes(m) && !(m->contiguous && steps)) return clone(m, MemoryFormat::contiguous);
  if (m->marks == 0) return m;
  const size_t fast = result_by_columns ? 1 : 2, slow = 3 - fast;
  const bool along = m.strides()[fast] == 1 && m.strides()[slow] >= std::max<int64_t>(1, m.sizes()[fast]);
  return along ? clone(m) : m;
}

// As there, bmm_out_cuda_impl: a batch of single columns is written as it is.
bool batch_lies_by_columns(const Tensor& m) {
  return m.strides()[1] == 1 && (m.size(2) == 1 || m.strides()[2] >= std::max<int64_t>(1, m.size(1)));
}

// As there: a result that cuBLAS cannot write is copied by columns.
Tensor batched_result(const Tensor& m) {
  const bool by_rows =
      m.strides()[2] == 1 && (m.size(1) == 1 || m.strides()[1] >= std::max<int64_t>(1, m.size(2)));
  if (by_rows || batch_lies_by_columns(m)) return m;
  return transpose(clone(transpose(m, 1, 2), MemoryFormat::contiguous), 1, 2);
}

}  // namespace

BlasOperands::BlasOperands(Call& c, const Tensor& a, const Tensor& b)
    : result(blas_operand(c, c.result_tensor(), c.result_tensor())),
      first(blas_operand(c, lies_by_columns(result) ? a : b, result)),
      second(blas_operand(c, lies_by_columns(result) ? b : a, result)) {}

BatchedOperands::BatchedOperands(const Call& c, const Tensor& a, const Tensor& b)
    : result(batched_result(c.result_tensor())),
      first(batched_operand(batch_lies_by_columns(result) ? a : b, batch_lies_by_columns(result))),
      second(batched_operand(batch_lies_by_columns(result) ? b : a, batch_lies_by_columns(result))) {}

namespace {

void mm_meta(Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("mat2");
  if (a.dim() != 2 || b.dim() != 2)
    c.error(fmt::format("expects two matrices, got {} and {}", describe(a), describe(b)));
  if (product_with_sparse(c, a, b)) return;
  if (a.size(1) != b.size(0))
    c.error(fmt::format("the inner sizes must agree; got {} and {}", describe(a), describe(b)));
  c.output(Sizes{a.size(0), b.size(1)}, a.dtype());
}

FlopCount mm_flops(const Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("mat2");
  return {.counted = multiply(2, multiply(a.size(0), multiply(a.size(1), b.size(1))))};
}

// A sum of no products is zeros, or self scaled: no library is called.
bool is_empty_product(const Call& c, const Tensor& factor) {
  return c.result_tensor().numel() == 0 || factor.numel() == 0;
}

void mm_cuda(Call& c) {
  if (c.tensor("self").is_sparse() || c.tensor("mat2").is_sparse()) return;
  c.allocate(0);
  if (is_empty_product(c, c.tensor("self"))) return;
  const BlasOperands operands(c, c.tensor("self"), c.tensor("mat2"));
  cublas_workspace(c);
}

void addmm_meta(Call& c) {
  const Tensor &a = c.tensor("mat1"), &b = c.tensor("mat2");
  if (a.dim() != 2 || b.dim() != 2)
    c.error(fmt::format("expects matrices, got {} and {}", describe(a), describe(b)));
  if (a.size(1) != b.size(0))
    c.error(fmt::format("the inner sizes must agree; got {} and {}", describe(a), describe(b)));
  const Sizes sizes{a.size(0), b.size(1)};
  if (broadcast(c.tensor("self").sizes(), sizes) != sizes)
    c.error(fmt::format("self does not broadcast to {}; got {}", to_string(SizesView(sizes)),
                        describe(c.tensor("self"))));
  if (sum_with_sparse_product(c, a, b)) return;
  c.output(sizes, c.tensor("self").dtype());
}

FlopCount addmm_flops(const Call& c) {
  const Tensor &a = c.tensor("mat1"), &b = c.tensor("mat2");
  return {.counted = multiply(2, multiply(a.size(0), multiply(a.size(1), b.size(1))))};
}

// cublasLt's fused bias needs: beta 1, a bias of one row, and a second factor without sizes of 1. A single
// row in the first factor does not matter (recorded: resnet18 at batch 1 takes it, linear_regression with one
// column does not).
bool uses_lt(const Call& c) {
  const Tensor &self = c.tensor("self"), &b = c.tensor("mat2");
  return c.real("beta") == 1 && self->contiguous && self.dim() >= 1 && self.numel() == b.size(1) &&
         self.sizes().back() == b.size(1) && b.size(0) > 1 && b.size(1) > 1 && (is_floating(self.dtype()));
}

// From 2.15 on it also adds a 16-bit matrix that is not the result itself, scaled or not (recorded:
// `shapes/addmm/bf16/512-768-1024-2d`, `opinfo/addmm/0/bf16`; `opinfo/addbmm` adds in place).
bool adds_matrix_by_lt(const Call& c) {
  const Tensor& self = c.tensor("self");
  return !c.op.in_place && is_reduced_floating(self.dtype()) && self.sizes() == c.result_tensor().sizes();
}

template <bool matrices_too>
void addmm_cuda(Call& c) {
  if (c.tensor("mat1").is_sparse() || c.tensor("mat2").is_sparse()) return;
  c.allocate(0);
  if (is_empty_product(c, c.tensor("mat1"))) return;
  const BlasOperands operands(c, c.tensor("mat1"), c.tensor("mat2"));
  const bool lt = uses_lt(c) || (matrices_too && adds_matrix_by_lt(c));
  lt ? cublas_lt_workspace(c) : cublas_workspace(c);
}

// The gradient of one factor, kept in the layout of that factor: for a transposed one the product is taken
// the other way round and transposed (torch/csrc/autograd/FunctionsManual.cpp, mm_mat1_grad, mm_mat2_grad).
bool is_column_major(const TensorImpl& m) { return m.strides[0] == 1 && m.strides[1] == m.sizes[0]; }

Tensor mat1_gradient(Backward& b, const Tensor& mat2, const TensorImpl& mat1, const Value& alpha) {
  const bool dense = mat1.layout == Layout::strided && !mat2.is_sparse();
  return scaled(dense && is_column_major(mat1) ? t(mm(conj(mat2), t(b.grad()))) : mm(b.grad(), conj(t(mat2))),
                alpha);
}

Tensor mat2_gradient(Backward& b, const Tensor& mat1, const TensorImpl& mat2, const Value& alpha) {
  const bool dense = mat2.layout == Layout::strided && !mat1.is_sparse();
  return scaled(dense && is_column_major(mat2) ? t(mm(t(b.grad()), conj(mat1))) : mm(conj(t(mat1)), b.grad()),
                alpha);
}

// The product in the shape of the input is a view of it; from 2.15 on a tensor of its own (recorded:
// `shapes/linear/*/8x512-768-3072`).
template <bool view_for_itself>
void linear_body(Call& c) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight"), &bias = c.tensor("bias");
  Session& s = c.session;
  if (input.dim() == 2 && bias.defined()) return c.result(call<"addmm">(s, bias, input, t(weight)));
  if (bias.defined() && input->contiguous) {
    Sizes folded{-1, input.size(-1)}, sizes = input.sizes();
    sizes.back() = weight.size(0);
    const Tensor rows = view(input, folded);
    const Tensor product = call<"addmm">(s, bias, rows, t(weight));
    return c.result(view_for_itself ? call<"_unsafe_view">(s, product, sizes) : view(product, sizes));
  }
  Tensor out = call<"matmul">(s, input, t(weight));
  // isTensorSubclassLike: in a dispatch mode, as a selective checkpoint has one, nothing is written in place.
  if (bias.defined() && autograd_state(s).selective)
    out = call<"add.Tensor">(s, out, bias);
  else if (bias.defined())
    out = call<"add_.Tensor">(s, out, bias);
  c.result(out);
}

// A view of a tensor that requires grad says so itself, although made in no_grad mode it has no history
// (torch/csrc/autograd/variable.h, DifferentiableViewMeta::requires_grad).
bool says_requires_grad(const Tensor& tensor) {
  return tensor.requires_grad() || (tensor->base && Tensor(tensor->base).requires_grad());
}

// aten/src/ATen/native/LinearAlgebra.cpp, should_fold: a big operand and a matrix become one product of
// matrices.
bool should_fold(const Tensor& a, const Tensor& b, bool matrix_first) {
  const Tensor &big = matrix_first ? b : a, &small = matrix_first ? a : b;
  if (says_requires_grad(small) && big.dim() >= 3) return true;
  if (matrix_first && small.dim() == 2) return false;
  const Sizes &sizes = big.sizes(), &strides = big.strides();
  if (big.numel() == 0) return true;
  for (size_t d = 0; d + 2 < sizes.size(); ++d)
    if (strides[d] != strides[d + 1] * sizes[d + 1]) return false;
  return true;
}

void folded_product(Call& c, const Tensor& a, const Tensor& b, bool matrix_first) {
  // The big operand comes first: (a·b)ᵀ = bᵀ·aᵀ.
  const Tensor big = matrix_first ? transpose(b, -2, -1) : a;
  const Tensor small = matrix_first ? (a.dim() == 2 ? t(a) : a) : b;
  Sizes sizes = without_last(big.sizes(), 1);
  const int64_t rows = numel(sizes);
  const Tensor folded = reshape(big, Sizes{rows, big.size(-1)});
  if (small.dim() == 1) {
    const Tensor product = call<"mv">(c.session, folded, small);
    return c.result(call<"_unsafe_view">(c.session, product, sizes));
  }
  sizes.push_back(small.size(1));
  const Tensor product = mm(folded, small);
  Tensor out = call<"_unsafe_view">(c.session, product, sizes);
  c.result(matrix_first ? contiguous(transpose(out, -2, -1)) : out);
}

void batched_product(Call& c, const Tensor& a, const Tensor& b) {
  const int64_t n = a.dim() > 1 ? a.size(-2) : 1, m1 = a.size(-1);
  const int64_t m2 = b.dim() > 1 ? b.size(-2) : b.size(-1), p = b.dim() > 1 ? b.size(-1) : 1;
  const Sizes batch_a(a.sizes().begin(), a.sizes().end() - std::min<int64_t>(2, a.dim()));
  const Sizes batch_b(b.sizes().begin(), b.sizes().end() - std::min<int64_t>(2, b.dim()));
  const Sizes batch = broadcast(batch_a, batch_b);
  const int64_t count = numel(batch);
  Sizes sizes_a = batch, sizes_b = batch;
  for (int64_t s : {n, m1}) sizes_a.push_back(s);
  for (int64_t s : {m2, p}) sizes_b.push_back(s);
  if (b.dim() == 1) sizes_b.pop_back();
  const Tensor left = reshape(expand(a, sizes_a), Sizes{count, n, m1});
  Tensor right;
  if (b.dim() == 1) {
    right = unsqueeze(reshape(expand(b, sizes_b), Sizes{count, m2}), 2);
  } else {
    right = reshape(expand(b, sizes_b), Sizes{count, m2, p});
  }
  Sizes out = batch;
  if (a.dim() > 1) out.push_back(n);
  if (b.dim() > 1) out.push_back(p);
  Tensor product = bmm(left, right);
  if (b.dim() == 1) product = call<"squeeze.dim">(c.session, product, -1);
  c.result(call<"_unsafe_view">(c.session, product, out));
}

void matmul(Call& c, const Tensor& a, const Tensor& b) {
  Session& s = c.session;
  const int64_t x = a.dim(), y = b.dim();
  if (x == 1 && y == 1) return c.result(call<"dot">(s, a, b));
  if (x == 2 && y == 1) return c.result(call<"mv">(s, a, b));
  if (x == 1 && y == 2) return c.result(call<"squeeze_.dim">(s, mm(unsqueeze(a, 0), b), 0));
  if (x == 2 && y == 2) return c.result(mm(a, b));
  const bool matrix_first = x <= 2;
  if ((x <= 2 || y <= 2) && should_fold(a, b, matrix_first)) return folded_product(c, a, b, matrix_first);
  if (x == 3 && y == 3 && a.size(0) != b.size(0)) {
    // A batch of one that needs a gradient is not blown up: it goes the way of a matrix.
    if (a.size(0) == 1 && a.requires_grad()) return matmul(c, call<"squeeze.dim">(s, a, 0), b);
    if (b.size(0) == 1 && b.requires_grad()) return matmul(c, a, call<"squeeze.dim">(s, b, 0));
  }
  batched_product(c, a, b);
}

void matmul_body(Call& c) { matmul(c, c.tensor("self"), c.tensor("other")); }

void bmm_meta(Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("mat2");
  if (a.size(0) != b.size(0) || a.size(2) != b.size(1))
    c.error(fmt::format("batch and inner sizes must agree; got {} and {}", describe(a), describe(b)));
  c.output(Sizes{a.size(0), a.size(1), b.size(2)}, a.dtype());
}

FlopCount bmm_flops(const Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("mat2");
  return {.counted = multiply(2, multiply(multiply(a.size(0), a.size(1)), multiply(a.size(2), b.size(2))))};
}

void bmm_cuda(Call& c) {
  c.allocate(0);
  const Tensor& self = c.tensor("self");
  if (is_empty_product(c, self)) return;
  const bool outer = self.size(2) == 1 && !is_complex(self.dtype());
  if (outer && c.platform().framework.has_kernel_for_outer_products) return;
  const BatchedOperands operands(c, self, c.tensor("mat2"));
  cublas_workspace(c);
}

constexpr Op addmm(void (*host_code)(Call&)) {
  return {
      .schema = "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
      .summary = "beta·self + alpha·(mat1 · mat2)",
      .meta = addmm_meta,
      .host_code = {{DeviceType::cuda, host_code}},
      .derivatives = {{{"mat1"},
                       {"mat2"},
                       [](Backward& b) -> Gradients {
                         return {mat1_gradient(b, b("mat2"), *b.shape("mat1"), b["alpha"])};
                       }},
                      {{"mat2"},
                       {"mat1"},
                       [](Backward& b) -> Gradients {
                         return {mat2_gradient(b, b("mat1"), *b.shape("mat2"), b["alpha"])};
                       }},
                      {{"self"}, {}, [](Backward& b) -> Gradients { return {scaled(b.grad(), b["beta"])}; }}},
      .flops = addmm_flops,
      .examples = {"f32[4] f32[2,3] f32[3,4]", "f32[2,4] f32[2,3] f32[3,4]/1,3 2 0.5"},
      .facts = {.in_place_too = true,
                .autocast = Autocast::lower_precision,
                .product = true,
                .reads_marks = kConjugated}};
}

constexpr Op addmm_activation(void (*host_code)(Call&)) {
  return {.schema =
              "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, "
              "bool use_gelu=False) -> Tensor",
          .summary = "ReLU or GELU of beta·self + alpha·(mat1 · mat2)",
          .meta = addmm_meta,
          .host_code = {{DeviceType::cuda, host_code}},
          .derivatives = not_differentiable,
          .flops = addmm_flops,
          .examples = {"f32[4] f32[2,3] f32[3,4]", "f32[4] f32[2,3] f32[3,4]/1,3 1 1 True"},
          .facts = {.product = true}};
}

constexpr Op kProducts[] = {
    {.schema = "mm(Tensor self, Tensor mat2) -> Tensor",
     .summary = "self · mat2",
     .meta = mm_meta,
     .host_code = {{DeviceType::cuda, mm_cuda}},
     .derivatives =
         {{{"self"},
           {"mat2"},
           [](Backward& b) -> Gradients { return {mat1_gradient(b, b("mat2"), *b.shape("self"), 1)}; }},
          {{"mat2"},
           {"self"},
           [](Backward& b) -> Gradients { return {mat2_gradient(b, b("self"), *b.shape("mat2"), 1)}; }}},
     .flops = mm_flops,
     .examples = {"f32[2,3] f32[3,4]", "f32[2,3] f32[3,4]/1,3"},
     .facts = {.autocast = Autocast::lower_precision, .product = true, .reads_marks = kConjugated}},
    before({2, 15}, addmm(addmm_cuda<false>)),
    since({2, 15}, addmm(addmm_cuda<true>)),
    {.schema = "bmm(Tensor self, Tensor mat2) -> Tensor",
     .summary = "self[i] · mat2[i]",
     .meta = bmm_meta,
     .host_code = {{DeviceType::cuda, bmm_cuda}},
     .derivatives =
         {{{"self"},
           {"mat2"},
           [](Backward& b) -> Gradients { return {bmm(b.grad(), conj(transpose(b("mat2"), 1, 2)))}; }},
          {{"mat2"},
           {"self"},
           [](Backward& b) -> Gradients { return {bmm(conj(transpose(b("self"), 1, 2)), b.grad())}; }}},
     .flops = bmm_flops,
     .examples = {"f32[2,3,4] f32[2,4,5]"},
     .facts = {.takes = "self.dim == 3, mat2.dim == 3",
               .autocast = Autocast::lower_precision,
               .product = true,
               .reads_marks = kConjugated}},
    {.schema = "bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)",
     .summary = "out[i] := self[i] · mat2[i]",
     .meta = into_out<bmm_meta>,
     .host_code = {{DeviceType::cuda, cublas_workspace}},
     .derivatives = not_differentiable,
     .flops = bmm_flops,
     .examples = {"f32[2,3,4] f32[2,4,5] f32[2,3,5]"},
     .facts = {.product = true}},
    before({2, 15}, addmm_activation(addmm_cuda<false>)),
    since({2, 15}, addmm_activation(addmm_cuda<true>))};

constexpr Op linear(void (*body)(Call&)) {
  return {.schema = "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
          .summary = "input · weightᵀ + bias",
          .meta = composite(body),
          .derivatives = by_body,
          .flops = by_body,
          .examples = {"f32[2,3] f32[4,3] f32[4]", "f32[2,5,3] f32[4,3] f32[4]", "f32[2,5,3] f32[4,3]"},
          .facts = {.takes = "input.dim >= 1, weight.dim in 1 to 2",
                    .autocast = Autocast::lower_precision,
                    .product = true}};
}

constexpr Op kMatmul[] = {
    before({2, 15}, linear(linear_body<false>)),
    since({2, 15}, linear(linear_body<true>)),
    {.schema = "matmul(Tensor self, Tensor other) -> Tensor",
     .summary = "product over the last and last but one dimensions",
     .meta = composite(matmul_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3] f32[3,4]", "f32[5,2,3] f32[3,4]", "f32[5,2,3] f32[5,3,4]"},
     .facts = {
         .takes = "self.dim > 0, other.dim > 0", .autocast = Autocast::lower_precision, .product = true}}};

}  // namespace

Tables matmul_operators() {
  static constexpr Records tables[] = {kProducts, kMatmul};
  return tables;
}

}  // namespace metaprof
