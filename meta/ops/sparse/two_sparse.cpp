// Products of two sparse matrices (native/sparse/cuda/SparseMatMul.cu and SparseBlasImpl.cpp, PyTorch 2.11).

#include <algorithm>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/sizes_by_data.h"
#include "meta/ops/sparse/family.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

// How many elements the product has is data: as if the second factor's lay evenly in its rows, and no two products met.
int64_t elements_of_product(const Call& c, const Tensor& a, const Tensor& b, int64_t of_a, int64_t of_b) {
  note_assumed(c);
  const int64_t meetings = multiply(of_a, of_b) / std::max<int64_t>(1, b.size(0));
  return std::min(multiply(a.size(0), b.size(1)), meetings);
}

Tensor of_32_bits(Session& s, const Tensor& integers) {
  return integers.dtype() == DType::i32 ? integers : s.empty(integers.sizes(), DType::i32, integers.device());
}

// Where each row begins and the columns, in 32 bits; rows are copied to 32 bits on the way (_to_csr_int).
struct Rows32 {
  Tensor begins, columns;

  Rows32(Session& s, const Tensor& coordinates) {
    const int64_t count = sparse_part(coordinates, 0).size(1);
    begins = s.empty(Sizes{coordinates.size(0) + 1}, DType::i32, coordinates.device());
    { const Tensor rows = s.empty(Sizes{count}, DType::i32, coordinates.device()); }
    columns = s.empty(Sizes{count}, DType::i32, coordinates.device());
  }
  ~Rows32() { columns = Tensor(); }
};

void coordinates_times_coordinates(Call& c) {
  Session& s = c.session;
  const BelowAutograd below(s);
  const Tensor &self = c.tensor("self"), &other = c.tensor("other");
  if (self->layout != Layout::sparse || other->layout != Layout::sparse || self.dim() != 2 ||
      other.dim() != 2)
    c.error("expects two matrices of coordinates (COO)");
  if (self.size(1) != other.size(0))
    c.error(fmt::format("the inner sizes must agree; got {} and {}", describe(self), describe(other)));
  const Tensor b = call<"coalesce">(s, other), a = call<"coalesce">(s, self);
  const Sizes sizes{self.size(0), other.size(1)};
  const int64_t count = elements_of_product(c, a, b, sparse_part(a, 1).size(0), sparse_part(b, 1).size(0));
  Tensor values;
  if (c.on_cuda()) {
    const Rows32 first(s, a), second(s, b);
    const Tensor begins = s.empty(Sizes{sizes[0] + 1}, DType::i32, self.device());
    note_unknown_scratch(c);
    const Tensor columns = s.empty(Sizes{count}, DType::i32, self.device());
    values = s.empty(Sizes{count}, self.dtype(), self.device());
    const Tensor indices = s.empty(Sizes{2, count}, DType::i64, self.device());
    return c.result(make_sparse(s, indices, values, sizes));
  }
  const Tensor indices = s.empty(Sizes{2, count}, DType::i64, self.device());
  c.result(make_sparse(s, indices, s.empty(Sizes{count}, self.dtype(), self.device()), sizes));
}

// FunctionsManual.cpp, sparse_sparse_matmul_backward: where a factor has elements, its gradient has some.
Tensor at_elements_of(Session& s, const Tensor& product, const Tensor& factor) {
  const Tensor mask = call<"coalesce">(s, factor), coalesced = call<"coalesce">(s, product);
  return call<"sparse_mask">(s, coalesced, mask);
}

Gradients other_gradient(Backward& b) {
  const Tensor other = b("other");
  Tensor product;
  {
    const Tensor turned = t(b("self"));
    product = call<"_sparse_sparse_matmul">(b.session, turned, b.grad());
  }
  return {at_elements_of(b.session, product, other)};
}

Gradients self_gradient(Backward& b) {
  const Tensor self = b("self");
  Tensor product;
  {
    const Tensor turned = t(b("other"));
    product = call<"_sparse_sparse_matmul">(b.session, b.grad(), turned);
  }
  return {at_elements_of(b.session, product, self)};
}

FlopCount flops_of_two(const Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("other");
  if (!a.is_sparse() || !b.is_sparse()) return {};
  return {.own = 2 * sparse_part(a, 1).size(0) * sparse_part(b, 1).size(0) / std::max<int64_t>(1, b.size(0))};
}

constexpr Op kTwoSparse[] = {{.schema = "_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor",
                              .summary = "the product of two matrices of coordinates",
                              .meta = coordinates_times_coordinates,
                              .derivatives = {{{"other"}, {"other", "self"}, other_gradient},
                                              {{"self"}, {"other", "self"}, self_gradient}},
                              .flops = flops_of_two,
                              .examples = {"f32[4,3]sparse(i64[2,5] f32[5]) f32[3,4]sparse(i64[2,5] f32[5])"},
                              .facts = {.reads_data = true, .host_reads = true, .product = true}}};

}  // namespace

Tensor zero_rows(Session& s, const Tensor& a, const Tensor& b) {
  const auto integers = [&](int64_t n) {
    return call<"zeros">(s, Sizes{n}, DType::i64, Value(), a.device());
  };
  const Tensor begins = integers(a.size(0) + 1);
  return make_sparse_compressed(s, Layout::sparse_csr, begins, s.empty(Sizes{0}, DType::i64, a.device()),
                                s.empty(Sizes{0}, a.dtype(), a.device()), Sizes{a.size(0), b.size(1)});
}

// SparseBlasImpl.cpp, spgemm: cuSPARSE takes lists of 32 bits, and so are the result's. A result is made empty, then
// as large as it is.
Tensor product_of_rows(const Call& c, const Tensor& a, const Tensor& b) {
  Session& s = c.session;
  const int64_t count = elements_of_product(c, a, b, sparse_part(a, 2).size(0), sparse_part(b, 2).size(0));
  const Sizes sizes{a.size(0), b.size(1)}, rows{a.size(0) + 1};
  const auto made = [&](const Tensor& begins, DType index) {
    const Tensor columns = s.empty(Sizes{count}, index, a.device());
    const Tensor values = s.empty(Sizes{count}, a.dtype(), a.device());
    return make_sparse_compressed(s, Layout::sparse_csr, begins, columns, values, sizes);
  };
  Tensor empty = s.empty(Sizes{1}, DType::i64, a.device());
  Tensor begins = s.empty(rows, DType::i64, a.device());
  empty = Tensor();
  if (!a.is_cuda()) return made(begins, DType::i64);
  const Tensor a_columns = of_32_bits(s, sparse_part(a, 1)), a_begins = of_32_bits(s, sparse_part(a, 0)),
               b_columns = of_32_bits(s, sparse_part(b, 1)), b_begins = of_32_bits(s, sparse_part(b, 0));
  begins = s.empty(rows, DType::i32, a.device());
  note_unknown_scratch(c);
  return made(begins, DType::i32);
}

Tables two_sparse_operators() {
  static constexpr Records tables[] = {kTwoSparse};
  return tables;
}

}  // namespace metaprof
