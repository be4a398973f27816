// Products of a sparse and another matrix (native/sparse/cuda/SparseCUDATensorMath.cu and SparseBlasImpl.cpp,
// native/sparse/SparseTensorMath.cpp, native/mkl/SparseBlasImpl.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/sparse/family.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

bool by_columns(const Tensor& m) { return m.strides()[0] == 1 && m.strides()[1] == m.size(0); }

// SparseCUDATensorMath.cu, s_addmm_out_sparse_dense_cuda: coordinates become 32-bit rows (CSR), and the result is
// written by columns. How much cuSPARSE itself takes (cusparseSpMM_bufferSize) is known to the closed library only: its
// documentation says of CSR nothing but that some is needed.
void add_product_of_coordinates(const Call& c, const Tensor& sparse, const Tensor& dense, const Tensor& sum) {
  Session& s = c.session;
  const Tensor coalesced = call<"coalesce">(s, sparse);
  const Tensor indices = sparse_part(coalesced, 0);
  const int64_t count = indices.size(1);
  if (count == 0) {  // the sum is multiplied by a factor on the device
    const Tensor factor = s.empty({}, sum.dtype(), sum.device());
    return;
  }
  const auto as_integers = [&](int64_t row) {
    Tensor integers = s.empty(Sizes{count}, DType::i32, sum.device());
    call<"copy_">(s, integers, select(indices, 0, row));
    return integers;
  };
  const Tensor rows = s.empty(Sizes{sparse.size(0) + 1}, DType::i32, sum.device());
  as_integers(0);
  const Tensor columns = as_integers(1);
  const Tensor written = by_columns(sum) ? sum : clone(transpose(sum, 0, 1), MemoryFormat::contiguous);
  const bool as_given = by_columns(dense) || (dense.strides()[1] == 1 && dense.strides()[0] != dense.size(1));
  const Tensor factor = as_given ? dense : contiguous(dense);
  note_unknown_scratch(c);
}

bool blas_takes_matrix(const Tensor& m) {
  const bool rows = m.strides()[1] == 1 && m.strides()[0] >= std::max<int64_t>(1, m.size(1));
  const bool columns = m.strides()[0] == 1 && m.strides()[1] >= std::max<int64_t>(1, m.size(0));
  return rows || columns;
}

// SparseBlasImpl.cpp, spmm.
void add_product_of_compressed(const Call& c, const Tensor& dense) {
  const Tensor factor = blas_takes_matrix(dense) ? dense : clone(dense, MemoryFormat::contiguous);
  note_unknown_scratch(c);
}

bool are_lines(Layout layout) { return layout == Layout::sparse_csr || layout == Layout::sparse_csc; }

const Tensor& checked(Call& c, Name name) {
  const Tensor& matrix = c.tensor(name);
  if (matrix.dim() != 2) c.error(fmt::format("expects a matrix, got {}", describe(matrix)));
  return matrix;
}

void check_factors(Call& c, const Tensor& a, const Tensor& b) {
  if (a.size(1) != b.size(0))
    c.error(fmt::format("the inner sizes must agree; got {} and {}", describe(a), describe(b)));
  if (!a.is_sparse() && !b.is_sparse()) c.error("expects a sparse factor, got two dense ones");
  const Layout first = a->layout, second = b->layout;
  const bool known = !b.is_sparse()            ? first != Layout::sparse_bsc
                     : !a.is_sparse()          ? second != Layout::sparse_bsr
                     : first == Layout::sparse ? second == Layout::sparse
                                               : are_lines(first) && are_lines(second);
  if (!known)
    c.error(
        fmt::format("the framework has no product of a {} and a {} matrix", name_of(first), name_of(second)));
  for (const Tensor* factor : {&a, &b})
    if ((*factor)->layout == Layout::sparse && sparse_part(*factor, 0).size(0) != 2)
      c.error("expects a matrix whose two dimensions are both sparse");
}

FlopCount product_flops(const Tensor& sparse, const Tensor& dense) {
  if (!sparse.is_sparse())  // of two dense factors, which the kernel refuses, there is none
    return dense.is_sparse() ? product_flops(dense, sparse) : FlopCount{};
  const int64_t elements = sparse_part(sparse, sparse->extra->parts.size() - 1).numel();
  if (!dense.is_sparse()) return {.own = 2 * elements * dense.numel() / std::max<int64_t>(1, sparse.size(1))};
  const int64_t others = sparse_part(dense, dense->extra->parts.size() - 1).numel();
  return {.own = 2 * elements * others / std::max<int64_t>(1, dense.size(0))};
}

// FunctionsManual.cpp, mm_mat1_sparse_grad: where the sparse factor has elements, the gradient has some.
Tensor sparse_gradient(Backward& b, const Tensor& sparse, const Tensor& dense) {
  if (sparse->layout == Layout::sparse) {
    const Tensor mask = call<"coalesce">(b.session, sparse);
    return call<"sparse_mask">(b.session, scaled(mm(b.grad(), t(dense)), b["alpha"]), mask);
  }
  if (sparse->layout == Layout::sparse_csr) return sampled_product(nullptr, b.session, clone(sparse));
  fail("of the gradient of a {} factor of a product nothing is known", name_of(sparse->layout));
}

void sparse_addmm_kernel(Call& c) {
  const BelowAutograd below(c.session);
  const Tensor &mat1 = checked(c, "mat1"), &mat2 = checked(c, "mat2");
  check_factors(c, mat1, mat2);
  c.result(call<"addmm">(c.session, c.tensor("self"), mat1, mat2, c["beta"], c["alpha"]));
}

// native/sparse/SparseTensorMath.cpp, _sparse_mm.
void sparse_mm_body(Call& c) {
  const Tensor &sparse = checked(c, "sparse"), &dense = checked(c, "dense");
  check_factors(c, sparse, dense);
  Session& s = c.session;
  if (sparse->layout == Layout::sparse && dense.is_sparse())
    return c.result(call<"_sparse_sparse_matmul">(s, sparse, dense));
  if (sparse.is_sparse() && dense.is_sparse())
    return c.result(call<"_sparse_addmm">(s, zero_rows(s, sparse, dense), sparse, dense, 0, 1));
  if (sparse.is_sparse()) {
    const Tensor zeros = zeros_of(dense, Sizes{sparse.size(0), dense.size(1)});
    return c.result(call<"_sparse_addmm">(s, zeros, sparse, dense, 0, 1));
  }
  const Tensor zeros = zeros_of(sparse, Sizes{sparse.size(0), dense.size(1)});
  c.result(t(call<"_sparse_addmm">(s, t(zeros), t(dense), t(sparse), 0, 1)));
}

constexpr Op kSparseProducts[] = {
    composite_of("_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", "sparse · dense", sparse_mm_body,
                 {"f32[4,3]sparse(i64[2,5] f32[5]) f32[3,2]"}),
    {.schema =
         "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .summary = "beta·self + alpha·(mat1 · mat2), mat1 sparse, whose gradient is sparse, too",
     .meta = sparse_addmm_kernel,
     .derivatives =
         {{{"mat1"}, {"mat1", "mat2"}, [](Backward& b) { return sparse_gradient(b, b("mat1"), b("mat2")); }},
          {{"mat2"}, {"mat1"}, [](Backward& b) { return scaled(mm(t(b("mat1")), b.grad()), b["alpha"]); }},
          {{"self"}, {}, [](Backward& b) { return scaled(b.grad(), b["beta"]); }}},
     .flops = [](const Call& c) { return product_flops(c.tensor("mat1"), c.tensor("mat2")); },
     .examples = {"f32[4,2] f32[4,3]sparse(i64[2,5] f32[5]) f32[3,2]"},
     .facts = {.node = "SparseAddmmBackward0", .reads_data = true}}};

}  // namespace

bool product_with_sparse(Call& c, const Tensor& a, const Tensor& b) {
  if (!a.is_sparse() && !b.is_sparse()) return false;
  check_factors(c, a, b);
  const BelowAutograd below(c.session);
  Session& s = c.session;
  if (a->layout == Layout::sparse || b->layout == Layout::sparse) {
    c.result(call<"_sparse_mm">(s, a, b));
  } else if (a.is_sparse() && b.is_sparse()) {
    const Tensor first = call<"to_sparse_csr">(s, a), second = call<"to_sparse_csr">(s, b);
    c.result(call<"addmm">(s, zero_rows(s, a, b), first, second, 0.0, 1.0));
  } else {
    const bool by_columns = a->layout == Layout::sparse_csc;
    const Tensor first = by_columns ? call<"to_sparse_csr">(s, a) : a;
    const Tensor zeros = zeros_of(a.is_sparse() ? b : a, Sizes{a.size(0), b.size(1)});
    c.result(call<"addmm">(s, zeros, first, b, 0.0, 1.0));
  }
  return true;
}

bool sum_with_sparse_product(Call& c, const Tensor& a, const Tensor& b) {
  if (!a.is_sparse() && !b.is_sparse()) return false;
  check_factors(c, a, b);
  const BelowAutograd below(c.session);
  if (a.is_sparse() && b.is_sparse()) {
    if (c.tensor("self")->layout != Layout::sparse_csr || c.real("beta") != 0 || c.op.in_place)
      c.error("of a product of two sparse matrices that is added to something nothing is known");
    c.result(product_of_rows(c, a, b));
    return true;
  }
  Tensor sum = c.tensor("self");
  if (!c.op.in_place) {
    sum = c.output(Sizes{a.size(0), b.size(1)}, (a.is_sparse() ? b : a).dtype());
    c.allocate(0);
  } else {
    c.result(sum);
  }
  if (!c.on_cuda()) return true;
  // What stands on the right is the transposed product's left factor.
  const Tensor sparse = a.is_sparse() ? a : t(b), dense = a.is_sparse() ? b : t(a);
  switch (sparse->layout) {
    case Layout::sparse: add_product_of_coordinates(c, sparse, dense, a.is_sparse() ? sum : t(sum)); break;
    case Layout::sparse_bsr: add_product_of_blocks(c, sparse, dense, a.is_sparse() ? sum : t(sum)); break;
    default: {
      const Tensor rows = call<"to_sparse_csr">(c.session, sparse);
      add_product_of_compressed(c, dense);
    }
  }
  return true;
}

Tables sparse_product_operators() {
  static constexpr Records tables[] = {kSparseProducts};
  return tables;
}

}  // namespace metaprof
