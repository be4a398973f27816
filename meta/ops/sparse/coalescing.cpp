// Sparse tensors whose coordinates occur once each (coalesced), and the rows of a dense tensor that they name.

#include <algorithm>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/cub.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/sizes_by_data.h"
#include "meta/ops/sparse/family.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

const Tensor& coordinates_only(Call& c, Name name) {
  const Tensor& tensor = c.tensor(name);
  if (tensor->layout != Layout::sparse) c.error("expects a sparse tensor of coordinates (COO)");
  return tensor;
}

// Of equal coordinates one remains. How many there are is data: what the program says, else as if no two were equal.
int64_t count_of_different(Call& c, const Tensor& self) {
  const int64_t count = sparse_part(self, 1).size(0);
  int64_t places = 1;
  for (int64_t d = 0; d < sparse_part(self, 0).size(0); ++d) places = multiply(places, self.size(d));
  const int64_t most = std::min(count, places), told = size_by_data(c);
  return told > 0 ? std::min(told, most) : most;
}

// native/sparse/cuda/SparseCUDATensor.cu, _coalesce_sparse_cuda: the coordinates as one number each, in a copy that
// Thrust sorts (a merge sort, as the comparison is a functor) and thins out; it becomes the result's indices.
void coalesce_cuda(Call& c, const Tensor& self, int64_t kept) {
  Session& session = c.session;
  const Tensor indices = sparse_part(self, 0), values = sparse_part(self, 1);
  const int64_t count = values.size(0), dims = indices.size(0);
  Tensor keys = flat_indices(session, indices);
  if (dims == 1) keys = call<"clone">(session, keys);
  Tensor new_values;
  {
    const Tensor places = c.temporary(Sizes{count}, DType::i64),
                 first = c.temporary(Sizes{count}, DType::i64);
    c.temporary_bytes(thrust_sort_by_key_bytes(count, 8, 8));
    c.temporary_bytes(cub_bytes<thrust_unique_by_key_bytes>(c, count));
    Sizes sizes = values.sizes();
    sizes[0] = kept;
    new_values = session.empty(sizes, values.dtype(), self.device());
  }
  const Tensor row = alias(keys, Sizes{1, kept}, Sizes{kept, 1}, keys->offset);
  Tensor new_indices = row;
  if (dims > 1) {
    new_indices = session.empty(Sizes{dims, kept}, DType::i64, self.device());
    for (int64_t d = dims - 1; d >= 0; --d)
      call<"copy_">(session, call<"narrow">(session, new_indices, 0, d, 1), row);
  }
  c.result(make_sparse(session, new_indices, new_values, self.sizes()));
}

// native/sparse/SparseTensor.cpp, _coalesce_sparse_cpu: room for all, of which the result shows the first ones.
void coalesce_cpu(Call& c, const Tensor& self, int64_t kept) {
  Session& session = c.session;
  const Tensor indices = sparse_part(self, 0), values = c.contiguous(sparse_part(self, 1));
  const Tensor keys = flat_indices(session, indices);
  const Tensor new_indices = session.empty(indices.sizes(), DType::i64, self.device());
  const Tensor new_values = session.empty(values.sizes(), values.dtype(), self.device());
  call_all<"sort">(session, keys, 0);
  c.result(make_sparse(session, call<"narrow">(session, new_indices, 1, 0, kept),
                       call<"narrow">(session, new_values, 0, 0, kept), self.sizes()));
}

void coalesce_kernel(Call& c) {
  const Tensor& self = coordinates_only(c, "self");
  const BelowAutograd below(c.session);
  if (sparse_part(self, 1).size(0) < 2) {
    c.result(call<"clone">(c.session, self));
  } else if (c.on_cuda()) {
    coalesce_cuda(c, self, count_of_different(c, self));
  } else {
    coalesce_cpu(c, self, count_of_different(c, self));
  }
  c.result_tensor()->ensure_extra().coalesced = true;
}

void coalesce_body(Call& c) {
  const Tensor& self = coordinates_only(c, "self");
  c.result(self->extra->coalesced ? self : call<"_coalesce">(c.session, self));
}

// What a dense tensor has at a mask's places: rows of it, or elements (indexed by several lists).
Tensor values_at(Session& session, const Tensor& dense, const Tensor& mask) {
  const Tensor indices = sparse_part(mask, 0), values = sparse_part(mask, 1);
  const int64_t columns = values.numel() / values.size(0);
  if (indices.size(0) > 1) return session.empty(values.sizes(), dense.dtype(), dense.device());
  return call<"index_select">(session, view(dense, Sizes{dense.numel() / columns, columns}), 0,
                              flat_indices(session, indices));
}

// native/sparse/SparseBinaryOpIntersectionCommon.h: the elements of one are looked up among the sorted ones of the other.
void mask_sparse_by_sparse(const Call& c, const Tensor& self, const Tensor& mask, Tensor& indices,
                           Tensor& values) {
  Session& s = c.session;
  const int64_t count = sparse_part(mask, 1).size(0);
  const auto integers = [&](SizesView sizes) { return s.empty(sizes, DType::i64, self.device()); };
  Tensor keys = call<"arange">(s, sparse_part(self, 1).size(0), DType::i64, Value(), self.device());
  Tensor sorted_indices, sorted_values, sorted_keys, order;
  if (self->extra->coalesced) {
    order = integers(Sizes{count});
  } else {
    const Tensor places = call_all<"sort">(s, keys, 0)[1];
    sorted_indices = index_select(sparse_part(self, 0), 1, places);
    sorted_values = index_select(sparse_part(self, 1), 0, places);
    sorted_keys = index_select(keys, 0, places);
    keys = Tensor();
  }
  if (!keys.defined()) keys = integers(Sizes{count});
  const Tensor matches = integers(Sizes{2, count});
  integers(Sizes{1});
  indices = clone(sparse_part(mask, 0));
  values = s.empty(sparse_part(mask, 1).sizes(), self.dtype(), self.device());
}

// native/sparse/SparseTensor.cpp, sparse_mask: a product with ones at the mask's places (SparseTensorMath.cpp,
// _mul_dense_sparse_out).
void sparse_mask_body(Call& c) {
  const Tensor &self = c.tensor("self"), &mask = coordinates_only(c, "mask");
  if (self.sizes() != mask.sizes()) c.error("expects a tensor of the mask's sizes");
  if (self.is_sparse() && self->layout != Layout::sparse)
    c.error("expects a dense tensor or coordinates (COO)");
  const BelowAutograd below(c.session);
  if (self.is_sparse()) {
    Tensor indices, values;
    mask_sparse_by_sparse(c, self, mask, indices, values);
    return c.result(make_sparse(c.session, indices, values, self.sizes()));
  }
  if (sparse_part(mask, 1).numel() == 0) return c.result(call<"clone">(c.session, mask));
  const Tensor one = call<"ones">(c.session, Sizes{1}, mask.dtype(), Value(), mask.device());
  const Tensor values = sparse_part(mask, 1);
  const Tensor rows = values_at(c.session, self, mask);
  const Tensor indices = call<"clone">(c.session, sparse_part(mask, 0));
  const Tensor kept = call<"mul.Tensor">(c.session, view(rows, values.sizes()),
                                         call<"expand">(c.session, one, values.sizes()));
  Tensor masked = make_sparse(c.session, indices, kept, self.sizes());
  masked->extra->coalesced = mask->extra->coalesced;
  c.result(masked);
}

constexpr Op kCoalescing[] = {
    composite_of("coalesce(Tensor(a) self) -> Tensor(a)",
                 "equal coordinates are added up, unless that is done", coalesce_body,
                 {"f32[10,3]sparse(i64[1,4] f32[4,3])"}, {.cudagraph_unsafe = true, .reads_data = true}),
    {.schema = "_coalesce(Tensor self) -> Tensor",
     .summary = "equal coordinates are added up",
     .meta = coalesce_kernel,
     .derivatives = {{{"self"}, {}, [](Backward& b) { return b.grad(); }}},
     .flops = input_flops,
     .examples = {"f32[10,3]sparse(i64[1,4] f32[4,3])", "f32[4,5,3]sparse(i64[2,6] f32[6,3])"},
     .facts = {.reads_data = true, .host_reads = true}},
    composite_of("sparse_mask(Tensor self, Tensor mask) -> Tensor",
                 "what stands in self at the mask's places", sparse_mask_body,
                 {"f32[10,3] f32[10,3]sparse(i64[1,4] f32[4,3])"})};

}  // namespace

Tensor negative(Session& session, const Tensor& tensor) {
  if (tensor->layout != Layout::sparse) return call<"neg">(session, tensor);
  const BelowAutograd below(session);
  const Tensor values = call<"clone">(session, sparse_part(tensor, 1)),
               indices = call<"clone">(session, sparse_part(tensor, 0));
  Tensor result = make_sparse(session, indices, values, tensor.sizes());
  result->extra->coalesced = tensor->extra->coalesced;
  return result;
}

Tables coalescing_operators() {
  static constexpr Records tables[] = {kCoalescing};
  return tables;
}

}  // namespace metaprof
