// Products of which only some elements are wanted, and products that are reduced otherwise than by sums
// (native/sparse/cuda/SparseBlasImpl.cpp, native/sparse/SparseCsrTensorMath.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include <array>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/sparse/family.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

const Tensor& rows_only(Call& c, Name name) {
  const Tensor& self = c.tensor(name);
  if (self->layout != Layout::sparse_csr || self.dim() != 2)
    c.error(fmt::format("expects a matrix of compressed rows (CSR), got {}", describe(self)));
  return self;
}

void sampled_addmm_kernel(Call& c) {
  const BelowAutograd below(c.session);
  const Tensor &self = rows_only(c, "self"), &mat1 = c.tensor("mat1"), &mat2 = c.tensor("mat2");
  if (mat1.dim() != 2 || mat2.dim() != 2 || mat1.size(1) != mat2.size(0) || mat1.size(0) != self.size(0) ||
      mat2.size(1) != self.size(1))
    c.error(fmt::format("{} and {} have no product of the sizes of {}", describe(mat1), describe(mat2),
                        describe(self)));
  c.result(sampled_product(&c, c.session, self));
}

// derivatives.yaml: products with what the gradient has where `self` has elements. The framework masks by a product of
// elements, whose coordinates become rows again.
Tensor masked_gradient(Backward& b) {
  const Tensor self = b("self"), gradient = b.grad();
  if (!gradient.is_sparse()) fail("expects a gradient of compressed rows (CSR)");
  const Tensor mask = coordinates_of_compressed(b.session, self);
  const Tensor given = coordinates_of_compressed(b.session, gradient);
  return call<"_to_sparse_csr">(b.session, call<"sparse_mask">(b.session, given, mask));
}

// `min` and `max` also say which element it was.
bool chooses(const Call& c) { return c["reduce"].string() == "amax" || c["reduce"].string() == "amin"; }

void reduce_meta(Call& c) {
  const Tensor &self = rows_only(c, "self"), &other = c.tensor("other");
  if (other.dim() != 2 || self.size(1) != other.size(0))
    c.error(fmt::format("the inner sizes must agree; got {} and {}", describe(self), describe(other)));
  c.output(Sizes{self.size(0), other.size(1)}, other.dtype());
  c.output(chooses(c) ? Sizes{self.size(0), other.size(1)} : Sizes{0}, DType::i64);
}

void reduce_backward_meta(Call& c) {
  const Tensor &self = rows_only(c, "self"), &weight = c.tensor("weight");
  const BelowAutograd below(c.session);
  c.result(make_sparse_compressed(c.session, Layout::sparse_csr, sparse_part(self, 0), sparse_part(self, 1),
                                  empty_like(sparse_part(self, 2)), self.sizes()));
  c.result(empty_like(weight));
}

Gradients reduce_gradient(Backward& b) {
  const Results both =
      call_all<"_sparse_mm_reduce_impl_backward">(b.session, b("self"), b.grad(), b("other"), b["reduce"],
                                                  b("result1"), Value(Value::Booleans{true, true}));
  return {both[1], both[0]};
}

FlopCount flops_of_sampled(const Call& c) {
  const Tensor& self = c.tensor("self");
  return {.own = self.is_sparse() ? 2 * sparse_part(self, 2).numel() * c.tensor("mat1").size(1) : 0};
}

FlopCount flops_of_reduced(const Call& c) {
  const Tensor& self = c.tensor("self");
  return {.own = self.is_sparse() ? 2 * sparse_part(self, 2).numel() * c.tensor("other").size(1) : 0};
}

constexpr Op kSampledProducts[] = {
    {.schema = "sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar "
               "alpha=1) -> Tensor",
     .summary = "beta·self + alpha·(mat1 · mat2) where self has elements",
     .meta = sampled_addmm_kernel,
     .derivatives = {{{"mat1"},
                      {"mat2", "self"},
                      [](Backward& b) { return scaled(mm(masked_gradient(b), t(b("mat2"))), b["alpha"]); }},
                     {{"mat2"},
                      {"mat1", "self"},
                      [](Backward& b) { return scaled(mm(t(b("mat1")), masked_gradient(b)), b["alpha"]); }},
                     {{"self"}, {}, [](Backward& b) { return scaled(b.grad(), b["beta"]); }}},
     .flops = flops_of_sampled,
     .examples = {"f32[4,3]csr(i64[5] i64[6] f32[6]) f32[4,2] f32[2,3]"},
     .facts = {.product = true}},
    composite_of("_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor",
                 "sparse · dense with another reduction than a sum",
                 [](Call& c) {
                   c.result(call_all<"_sparse_mm_reduce_impl">(c.session, c.tensor("sparse"),
                                                               c.tensor("dense"), c["reduce"])[0]);
                 },
                 {"f32[4,3]csr(i64[5] i64[6] f32[6]) f32[3,2] \"amax\""}),
    {.schema = "_sparse_mm_reduce_impl(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)",
     .summary = "sparse · dense with another reduction than a sum, and what was chosen",
     .meta = reduce_meta,
     .derivatives = {{{"other", "self"}, {"other", "result1", "self"}, reduce_gradient}},
     .flops = flops_of_reduced,
     .examples = {"f32[4,3]csr(i64[5] i64[6] f32[6]) f32[3,2] \"amax\""},
     .facts = {.product = true}},
    {.schema = "_sparse_mm_reduce_impl_backward(Tensor self, Tensor grad_out, Tensor weight, str reduce, "
               "Tensor arg_out, bool[2] output_mask) -> (Tensor, Tensor)",
     .summary = "gradients of sparse · dense with another reduction than a sum",
     .meta = reduce_backward_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[4,3]csr(i64[5] i64[6] f32[6]) f32[4,2] f32[3,2] \"amax\" i64[4,2] (True True)"}}};

}  // namespace

// SparseBlasImpl.cpp, sampled_addmm_out_sparse_csr: a result that is made empty, then as large as `self`.
Tensor sampled_product(const Call* c, Session& s, const Tensor& self) {
  Tensor empty = s.empty(Sizes{1}, DType::i64, self.device());
  const Tensor begins = empty_like(sparse_part(self, 0));
  empty = Tensor();
  const Tensor plain = empty_like(sparse_part(self, 1)), values = empty_like(sparse_part(self, 2));
  if (c && self.is_cuda()) note_unknown_scratch(*c);
  return make_sparse_compressed(s, Layout::sparse_csr, begins, plain, values, self.sizes());
}

Tables sampled_product_operators() {
  static constexpr Records tables[] = {kSampledProducts};
  return tables;
}

}  // namespace metaprof
