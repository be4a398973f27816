// Products with vectors, and products that are added to something.

#include <fmt/format.h>

#include "meta/ops/products/family.h"
#include "meta/ops/products/matmul.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/library.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

constexpr Facts kLowerPrecision = {.autocast = Autocast::lower_precision, .product = true};
constexpr Facts kAlsoInPlace = {.in_place_too = true, .autocast = Autocast::lower_precision, .product = true};

Tensor mv(const Tensor& matrix, const Tensor& vector) {
  return call<"mv">(session_of(matrix), matrix, vector);
}
Tensor ger(const Tensor& a, const Tensor& b) { return call<"ger">(session_of(a), a, b); }

void need_vectors(const Call& c, const Tensor& a, const Tensor& b) {
  if (a.dim() != 1 || b.dim() != 1 || a.size(0) != b.size(0))
    c.error(fmt::format("expects two vectors of one size, got {} and {}", describe(a), describe(b)));
}

void dot_meta(Call& c) {
  const Tensor &a = c.arguments[0].tensor(), &b = c.arguments[1].tensor();
  need_vectors(c, a, b);
  c.output({}, a.dtype());
}

void blas_result(Call& c) {
  c.allocate(0);
  cublas_workspace(c);
}

FlopCount dot_flops(const Call& c) { return {.own = 2 * c.arguments[0].tensor().numel()}; }

void need_matrix_and_vector(const Call& c, const Tensor& matrix, const Tensor& vector) {
  if (matrix.dim() != 2 || vector.dim() != 1 || matrix.size(1) != vector.size(0))
    c.error(fmt::format("expects a matrix and a vector of its width, got {} and {}", describe(matrix),
                        describe(vector)));
}

void mv_meta(Call& c) {
  need_matrix_and_vector(c, c.tensor("self"), c.tensor("vec"));
  const Tensor& self = c.tensor("self");
  if (self->layout == Layout::sparse) {  // native/sparse/SparseTensorMath.cpp, mv_sparse
    const BelowAutograd below(c.session);
    return c.result(squeeze(mm(self, unsqueeze(c.tensor("vec"), -1)), -1));
  }
  if (self.is_sparse() && self->layout != Layout::sparse_csr)
    c.error(fmt::format("of a {} matrix times a vector nothing is known", name_of(self->layout)));
  c.output(Sizes{self.size(0)}, self.dtype());
}

// native/cuda/Blas.cpp, addmv_out_cuda: an expanded vector is copied, then a matrix whose strides BLAS cannot
// take.
void matrix_vector_cuda(Call& c, const Tensor& matrix, const Tensor& vector) {
  if (matrix->layout == Layout::sparse) return;
  c.allocate(0);
  if (matrix.is_sparse()) return note_unknown_scratch(c);
  if (c.result_tensor().numel() == 0 || matrix.numel() == 0) return;
  const Tensor steps = vector.strides()[0] == 0 ? c.contiguous(vector) : vector;
  const Tensor operand = blas_takes(matrix) ? matrix : c.contiguous(matrix);
  cublas_workspace(c);
}

void addmv_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &matrix = c.tensor("mat");
  need_matrix_and_vector(c, matrix, c.tensor("vec"));
  const Sizes sizes{matrix.size(0)};
  if (broadcast(self.sizes(), sizes) != sizes)
    c.error(
        fmt::format("self does not broadcast to {}; got {}", to_string(SizesView(sizes)), describe(self)));
  c.output(sizes, self.dtype());
}

void addr_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &a = c.tensor("vec1"), &b = c.tensor("vec2");
  if (a.dim() != 1 || b.dim() != 1)
    c.error(fmt::format("expects two vectors, got {} and {}", describe(a), describe(b)));
  const Sizes sizes{a.size(0), b.size(0)};
  if (broadcast(self.sizes(), sizes) != sizes)
    c.error(
        fmt::format("self does not broadcast to {}; got {}", to_string(SizesView(sizes)), describe(self)));
  const Tensor column = alias(a, Sizes{a.size(0), 1}, Sizes{a.strides()[0], 1}, a->offset);
  elementwise(c, {&self, &column, &b}, result_type({&self, &a, &b}));
}

struct Batches {
  int64_t count, rows, inner, columns;
};

Batches batches_of(const Call& c) {
  const Tensor &a = c.tensor("batch1"), &b = c.tensor("batch2");
  if (a.dim() != 3 || b.dim() != 3 || a.size(0) != b.size(0) || a.size(2) != b.size(1))
    c.error(fmt::format("expects batches of matrices that fit each other, got {} and {}", describe(a),
                        describe(b)));
  return {a.size(0), a.size(1), a.size(2), b.size(2)};
}

void added_product_meta(Call& c, const Sizes& sizes) {
  const Tensor& self = c.tensor("self");
  if (broadcast(self.sizes(), sizes) != sizes)
    c.error(
        fmt::format("self does not broadcast to {}; got {}", to_string(SizesView(sizes)), describe(self)));
  c.output(sizes, c.tensor("batch1").dtype());
}

void baddbmm_meta(Call& c) {
  const Batches n = batches_of(c);
  added_product_meta(c, Sizes{n.count, n.rows, n.columns});
}

void baddbmm_cuda(Call& c) {
  c.allocate(0);
  if (c.result_tensor().numel() == 0 || c.tensor("batch1").numel() == 0) return;
  const BatchedOperands operands(c, c.tensor("batch1"), c.tensor("batch2"));
  cublas_workspace(c);
}

FlopCount baddbmm_flops(const Call& c) {
  const Batches n = batches_of(c);
  return {.counted = 2 * n.count * n.rows * n.inner * n.columns};
}

void addbmm_meta(Call& c) {
  const Batches n = batches_of(c);
  added_product_meta(c, Sizes{n.rows, n.columns});
}

// One product after the other is added to the result (native/LinearAlgebra.cpp, addbmm_impl).
void addbmm_cuda(Call& c) {
  c.allocate(0);
  const Batches n = batches_of(c);
  Value beta = c["beta"];
  for (int64_t i = 0; i < n.count; ++i) {
    const Tensor b = call<"select.int">(c.session, c.tensor("batch2"), 0, i);
    const Tensor a = call<"select.int">(c.session, c.tensor("batch1"), 0, i);
    call<"addmm_">(c.session, c.result_tensor(), a, b, beta, c["alpha"]);
    beta = Value(1);
  }
}

FlopCount addbmm_flops(const Call& c) {
  const Batches n = batches_of(c);
  return {.own = 2 * n.count * n.rows * n.inner * n.columns};
}

// The gradient of a sum over the batch: the same for every element of it.
Tensor for_every_batch(Backward& b) {
  const Sizes sizes{b.sizes("batch1")[0], b.sizes("batch1")[1], b.sizes("batch2")[2]};
  return expand(unsqueeze(b.grad(), 0), sizes);
}

Gradients scaled_by_beta(Backward& b) { return {scaled(b.grad(), b["beta"])}; }

constexpr Op kVectorProducts[] = {
    {.schema = "dot(Tensor self, Tensor tensor) -> Tensor",
     .summary = "Σ self · tensor",
     .meta = dot_meta,
     .host_code = {{DeviceType::cuda, blas_result}},
     .derivatives =
         {{{"self"}, {"tensor"}, [](Backward& b) -> Gradients { return {mul(b.grad(), conj(b("tensor")))}; }},
          {{"tensor"}, {"self"}, [](Backward& b) -> Gradients { return {mul(b.grad(), conj(b("self")))}; }}},
     .flops = dot_flops,
     .examples = {"f32[3] f32[3]"},
     .facts = {.autocast = Autocast::promote, .reads_marks = kConjugated}},
    {.schema = "vdot(Tensor self, Tensor other) -> Tensor",
     .summary = "Σ conj(self) · other",
     .meta = dot_meta,
     .host_code = {{DeviceType::cuda, blas_result}},
     .derivatives =
         {{{"self"}, {"other"}, [](Backward& b) -> Gradients { return {mul(conj(b.grad()), b("other"))}; }},
          {{"other"}, {"self"}, [](Backward& b) -> Gradients { return {mul(b.grad(), b("self"))}; }}},
     .flops = dot_flops,
     .examples = {"f32[3] f32[3]"},
     .facts = {.autocast = Autocast::promote, .reads_marks = kConjugated}},
    {.schema = "mv(Tensor self, Tensor vec) -> Tensor",
     .summary = "self · vec",
     .meta = mv_meta,
     .host_code = {{DeviceType::cuda,
                    [](Call& c) { matrix_vector_cuda(c, c.tensor("self"), c.tensor("vec")); }}},
     .derivatives =
         {{{"self"}, {"vec"}, [](Backward& b) -> Gradients { return {ger(b.grad(), conj(b("vec")))}; }},
          {{"vec"}, {"self"}, [](Backward& b) -> Gradients { return {mv(conj(t(b("self"))), b.grad())}; }}},
     .flops = dot_flops,
     .examples = {"f32[2,3] f32[3]"},
     .facts = kLowerPrecision},
    {.schema = "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .summary = "beta·self + alpha·(mat · vec)",
     .meta = addmv_meta,
     .host_code = {{DeviceType::cuda,
                    [](Call& c) { matrix_vector_cuda(c, c.tensor("mat"), c.tensor("vec")); }}},
     .derivatives =
         {{{"self"}, {}, scaled_by_beta},
          {{"mat"},
           {"vec"},
           [](Backward& b) -> Gradients { return {scaled(ger(b.grad(), conj(b("vec"))), b["alpha"])}; }},
          {{"vec"},
           {"mat"},
           [](Backward& b) -> Gradients { return {scaled(mv(conj(t(b("mat"))), b.grad()), b["alpha"])}; }}},
     .flops = [](const Call& c) { return FlopCount{.own = 2 * c.tensor("mat").numel()}; },
     .examples = {"f32[2] f32[2,3] f32[3]", "f32[] f32[2,3] f32[3] 2 0.5"},
     .facts = kAlsoInPlace},
    {.schema = "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .summary = "beta·self + alpha·(vec1 vec2ᵀ)",
     .meta = addr_meta,
     .derivatives =
         {{{"self"}, {}, scaled_by_beta},
          {{"vec1"},
           {"vec2"},
           [](Backward& b) -> Gradients { return {scaled(mv(b.grad(), conj(b("vec2"))), b["alpha"])}; }},
          {{"vec2"},
           {"vec1"},
           [](Backward& b) -> Gradients { return {scaled(mv(t(b.grad()), conj(b("vec1"))), b["alpha"])}; }}},
     .flops = elementwise_flops<2>,
     .examples = {"f32[2,3] f32[2] f32[3]"},
     .facts = kAlsoInPlace}};

constexpr Op kBatchedSums[] = {
    {.schema =
         "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .summary = "beta·self[i] + alpha·(batch1[i] · batch2[i])",
     .meta = baddbmm_meta,
     .host_code = {{DeviceType::cuda, baddbmm_cuda}},
     .derivatives = {{{"self"}, {}, scaled_by_beta},
                     {{"batch1"},
                      {"batch2"},
                      [](Backward& b) -> Gradients {
                        return {scaled(bmm(b.grad(), conj(transpose(b("batch2"), 1, 2))), b["alpha"])};
                      }},
                     {{"batch2"},
                      {"batch1"},
                      [](Backward& b) -> Gradients {
                        return {scaled(bmm(conj(transpose(b("batch1"), 1, 2)), b.grad()), b["alpha"])};
                      }}},
     .flops = baddbmm_flops,
     .examples = {"f32[2,3,5] f32[2,3,4] f32[2,4,5]", "f32[5] f32[2,3,4] f32[2,4,5] 1 0.5"},
     .facts = {.in_place_too = true,
               .autocast = Autocast::lower_precision,
               .product = true,
               .reads_marks = kConjugated}},
    {.schema =
         "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .summary = "beta·self + alpha·Σ batch1[i] · batch2[i]",
     .meta = addbmm_meta,
     .host_code = {{DeviceType::cuda, addbmm_cuda}},
     .derivatives = {{{"self"}, {}, scaled_by_beta},
                     {{"batch1"},
                      {"batch2"},
                      [](Backward& b) -> Gradients {
                        const Tensor gradient = for_every_batch(b);
                        return {scaled(bmm(gradient, conj(transpose(b("batch2"), 1, 2))), b["alpha"])};
                      }},
                     {{"batch2"},
                      {"batch1"},
                      [](Backward& b) -> Gradients {
                        const Tensor transposed = conj(transpose(b("batch1"), 1, 2));
                        return {scaled(bmm(transposed, for_every_batch(b)), b["alpha"])};
                      }}},
     .flops = addbmm_flops,
     .examples = {"f32[3,5] f32[2,3,4] f32[2,4,5]"},
     .facts = kAlsoInPlace}};

}  // namespace

Tables vector_product_operators() {
  static constexpr Records tables[] = {kVectorProducts, kBatchedSums};
  return tables;
}

}  // namespace metaprof
