// Sums of coordinates over all or some dimensions (native/sparse/SparseTensorMath.cpp,
// native/sparse/cuda/SparseCUDATensorMath.cu, PyTorch 2.11).

#include <fmt/format.h>

#include <algorithm>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/sparse/family.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

// Which dimensions are summed over: how many of the sparse ones, which dimensions of the values, and what is kept.
struct SummedDims {
  int64_t sparse_dims, sparse_summed = 0;
  Sizes dense, kept_sizes, kept_sparse;

  SummedDims(Call& c, const Tensor& self, SizesView dims) : sparse_dims(sparse_part(self, 0).size(0)) {
    Sizes wrapped;
    for (const int64_t dim : dims) wrapped.push_back(wrap_dim(dim, self.dim()));
    for (int64_t d = 0; d < self.dim(); ++d) {
      if (std::ranges::find(wrapped, d) == wrapped.end()) {
        kept_sizes.push_back(self.size(d));
        if (d < sparse_dims) kept_sparse.push_back(d);
      } else if (d < sparse_dims) {
        ++sparse_summed;
      } else {
        dense.push_back(d + 1 - sparse_dims);
      }
    }
    if (dims.empty()) c.error("expects dimensions to sum over");
  }
  bool all_sparse() const { return sparse_summed == sparse_dims; }
};

const Tensor& summed_coordinates(Call& c, Name name) {
  const Tensor& self = c.tensor(name);
  if (self->layout != Layout::sparse)
    c.error(fmt::format("expects coordinates (COO), got a {} tensor", name_of(self->layout)));
  return self;
}

void sum_of_all(Call& c) {
  const Tensor coalesced = call<"coalesce">(c.session, summed_coordinates(c, "self"));
  const Tensor values = call<"values">(c.session, coalesced);
  c.result(call<"sum">(c.session, values, c.op.schema.arguments.size() > 1 ? c["dtype"] : Value()));
}

// _sparse_sum: the values, and the coordinates that are left, of which equal ones are added up.
void sum_over_dims(Call& c) {
  Session& s = c.session;
  const BelowAutograd below(s);
  const Tensor& self = summed_coordinates(c, "self");
  const SummedDims dims(c, self, c.ints("dim"));
  const Tensor indices = sparse_part(self, 0), values = sparse_part(self, 1);
  const Tensor new_values =
      dims.dense.empty() ? clone(values, MemoryFormat::contiguous) : sum(values, dims.dense, false);
  if (dims.all_sparse()) return c.result(sum(new_values, Sizes{0}, false));
  Tensor new_indices;
  if (dims.sparse_summed == 0) {
    new_indices = clone(indices, MemoryFormat::contiguous);
  } else {
    new_indices =
        s.empty(Sizes{int64_t(dims.kept_sparse.size()), indices.size(1)}, DType::i64, self.device());
    for (size_t i = 0; i < dims.kept_sparse.size(); ++i)
      copy_(select(new_indices, 0, int64_t(i)), select(indices, 0, dims.kept_sparse[i]));
  }
  c.result(call<"coalesce">(s, make_sparse(s, new_indices, new_values, dims.kept_sizes)));
}

// What was summed over in the values comes back as views.
Tensor as_wide_as(const Tensor& gradient, const Tensor& values, const Sizes& dense_dims, int64_t first) {
  Tensor wide = gradient;
  for (const int64_t dim : dense_dims) wide = unsqueeze(wide, dim - first);
  Sizes sizes = values.sizes();
  if (first == 1)
    sizes.erase(0);
  else
    sizes[0] = gradient.size(0);
  return expand(wide, sizes);
}

// flatten_indices_by_dims
Tensor flat_by_dims(Session& s, const Tensor& indices, const Sizes& dims) {
  Tensor flat = call<"zeros">(s, Sizes{indices.size(1)}, DType::i64, Value(), indices.device());
  for (const int64_t dim : dims) call<"add_.Tensor">(s, flat, select(indices, 0, dim));
  return flat;
}

Tensor values_of_sum_gradient(Session& s, const Tensor& grad, const Tensor& input, const SummedDims& dims) {
  const Tensor values = sparse_part(input, 1), grad_values = sparse_part(grad, 1);
  Tensor wide = grad_values;
  if (!dims.dense.empty())
    wide = clone(as_wide_as(grad_values, values, dims.dense, 0), MemoryFormat::contiguous);
  if (dims.sparse_summed == 0) return wide;
  Tensor result = empty_like(values);
  Sizes all;
  for (int64_t d = 0; d < sparse_part(grad, 0).size(0); ++d) all.push_back(d);
  const Tensor of_grad = flat_by_dims(s, sparse_part(grad, 0), all),
               of_input = flat_by_dims(s, sparse_part(input, 0), dims.kept_sparse);
  const Tensor places = empty_like(of_input);
  return result;
}

// _sparse_sum_backward_cuda
void sum_backward_kernel(Call& c) {
  Session& s = c.session;
  const BelowAutograd below(s);
  const Tensor input = call<"coalesce">(s, summed_coordinates(c, "self"));
  const SummedDims dims(c, input, c.ints("dim"));
  const Tensor& grad = c.tensor("grad");
  Tensor values;
  if (dims.all_sparse()) {
    if (grad.is_sparse()) c.error("expects a dense gradient where all sparse dimensions were summed over");
    const Tensor wide = as_wide_as(grad, sparse_part(input, 1), dims.dense, 1);
    values = clone(expand(wide, sparse_part(input, 1).sizes()), MemoryFormat::contiguous);
  } else {
    values = values_of_sum_gradient(s, call<"coalesce">(s, summed_coordinates(c, "grad")), input, dims);
  }
  Tensor result = make_sparse(s, clone(sparse_part(input, 0)), values, input.sizes());
  result->extra->coalesced = true;
  c.result(result);
}

FlopCount flops_of_sum(const Call& c) {
  const Tensor& self = c.tensor("self");
  return {.own = self.is_sparse() ? sparse_part(self, 1).numel() : 0};
}

constexpr const char* kSummed = "f32[4,3]sparse(i64[2,5] f32[5]) (1)";

constexpr Op kSparseSums[] = {
    composite_of("_sparse_sum(Tensor self) -> Tensor", "the sum of all elements", sum_of_all,
                 {"f32[4,3]sparse(i64[2,5] f32[5])"}),
    composite_of("_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor",
                 "the sum of all elements in another dtype", sum_of_all,
                 {"f32[4,3]sparse(i64[2,5] f32[5]) 7"}),
    composite_of("_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor",
                 "sums over dimensions in another dtype",
                 [](Call& c) {
                   const Tensor& self = c.tensor("self");
                   const Tensor converted = to(self, c.dtype("dtype", self.dtype()));
                   c.result(call<"_sparse_sum.dim">(c.session, converted, c["dim"]));
                 },
                 {"f32[4,3]sparse(i64[2,5] f32[5]) (1) 7"}),
    {.schema = "_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor",
     .summary = "sums over dimensions: dense if these are all sparse ones, else coordinates",
     .meta = sum_over_dims,
     .derivatives = {{{"self"},
                      {"self"},
                      [](Backward& b) {
                        return call<"_sparse_sum_backward">(b.session, b.grad(), b("self"), b["dim"]);
                      }}},
     .flops = flops_of_sum,
     .examples = {kSummed},
     .facts = {.node = "SparseSumBackward0"}},
    {.schema = "_sparse_sum_backward(Tensor grad, Tensor self, int[] dim) -> Tensor",
     .summary = "each element's sum's gradient",
     .meta = sum_backward_kernel,
     .derivatives = not_differentiable,
     .flops = flops_of_sum,
     .examples = {"f32[4]sparse(i64[1,3] f32[3]) f32[4,3]sparse(i64[2,5] f32[5]) (1)"}}};

}  // namespace

Tables sparse_sum_operators() {
  static constexpr Records tables[] = {kSparseSums};
  return tables;
}

}  // namespace metaprof
