#include "meta/ops/sparse.h"

#include <fmt/format.h>

#include "meta/ops/all.h"
#include "meta/ops/functions.h"

namespace metaprof {
namespace {

Tensor part(const Tensor& sparse, size_t i) { return Tensor(sparse->extra->parts[i]); }

Tensor joined(Session& session, const Tensor& a, const Tensor& b, size_t which, int64_t dim) {
  return call<"cat">(session, Value::Tensors{part(a, which), part(b, which)}, dim);
}

void make_meta(Call& c) {
  const Tensor &indices = c.tensor("indices"), &values = c.tensor("values");
  if (indices.dim() != 2 || values.dim() == 0 || indices.size(1) != values.size(0))
    c.error(fmt::format("expects indices [dimensions, n] and n values, got {} and {}", describe(indices),
                        describe(values)));
  c.result(make_sparse(c.session, indices, values, c.ints("size")));
}

}  // namespace

Tensor make_sparse(Session& session, const Tensor& indices, const Tensor& values, SizesView sizes) {
  Tensor sparse(new TensorImpl(sizes, contiguous_strides(sizes), values.dtype(), values.device()));
  sparse->layout = Layout::sparse;
  sparse->storage = session.allocate(values.device(), 0);
  for (const Tensor* data : {&indices, &values}) sparse->ensure_extra().parts.push_back(alias(*data));
  return sparse;
}

bool sum_of_sparse(Call& c) {
  const Tensor &self = c.arguments[0].tensor(), &other = c.arguments[1].tensor();
  if (!self.is_sparse() && !other.is_sparse()) return false;
  if (!self.is_sparse() || !other.is_sparse())
    c.error("the sum of a dense and a sparse tensor is not modelled; both must be of one kind");
  if (self.sizes() != other.sizes())
    c.error(fmt::format("sparse tensors must be of the same sizes, got {} and {}", describe(self),
                        describe(other)));
  // native/sparse/cuda/SparseCUDATensorMath.cu, add_out_sparse_cuda.
  const BelowAutograd below(c.session);
  const Tensor indices = joined(c.session, self, other, 0, 1), values = joined(c.session, self, other, 1, 0);
  if (c.op.in_place) {
    self->extra->parts = {indices, values};
    c.result(self);
  } else {
    c.result(make_sparse(c.session, indices, values, self.sizes()));
  }
  return true;
}

void add_sparse_operators(std::vector<Op>& ops) {
  ops.push_back({.schema =
                     "_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, SymInt[] size, *, ScalarType? "
                     "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? "
                     "is_coalesced=None) -> Tensor",
                 .summary = "a sparse tensor over indices and values",
                 .meta = make_meta,
                 .kernels = {},
                 .derivatives = not_differentiable,
                 .flops = free_of_flops,
                 .examples = {"i64[1,4] f32[4,3] (10 3)"}});
}

}  // namespace metaprof
