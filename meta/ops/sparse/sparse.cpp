#include "meta/ops/sparse/sparse.h"

#include <fmt/format.h>

#include <algorithm>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/estimated.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/no_gradient.h"
#include "meta/ops/sparse/family.h"

namespace metaprof {
namespace {

Tensor joined(Session& session, const Tensor& a, const Tensor& b, int64_t dim) {
  return call<"cat">(session, Value::Tensors{a, b}, dim);
}

bool is_one(const Value& number) {
  return number.kind() == Value::Kind::integer ? number.integer() == 1
                                               : number.kind() == Value::Kind::real && number.real() == 1;
}

constexpr std::string_view kSizeTaken = "size.each >= 0";

void make_meta(Call& c) {
  const Tensor &indices = c.tensor("indices"), &values = c.tensor("values");
  if (indices.dim() != 2 || values.dim() == 0 || indices.size(1) != values.size(0))
    c.error(fmt::format("expects indices [dimensions, n] and n values, got {} and {}", describe(indices),
                        describe(values)));
  Tensor sparse = make_sparse(c.session, indices, values, c.ints("size"));
  sparse->extra->coalesced = c.given("is_coalesced") && c.boolean("is_coalesced");
  c.result(sparse);
}

// Numbers of layouts in c10/core/Layout.h.
Layout layout_numbered(const Call& c, int64_t number) {
  switch (number) {
    case 2: return Layout::sparse_csr;
    case 4: return Layout::sparse_csc;
    case 5: return Layout::sparse_bsr;
    case 6: return Layout::sparse_bsc;
    default: c.error(fmt::format("{} is no layout of compressed matrices", number));
  }
}

void make_compressed_meta(Call& c) {
  const Tensor &compressed = c.tensor("compressed_indices"), &plain = c.tensor("plain_indices");
  const Layout layout = layout_numbered(c, c.given("layout") ? c.integer("layout") : 2);
  c.result(make_sparse_compressed(c.session, layout, compressed, plain, c.tensor("values"), c.ints("size")));
}

}  // namespace

Tensor make_sparse(Session& session, const Tensor& indices, const Tensor& values, SizesView sizes) {
  Tensor sparse(new TensorImpl(sizes, contiguous_strides(sizes), values.dtype(), values.device()));
  sparse->layout = Layout::sparse;
  sparse->storage = session.allocate(values.device(), 0);
  for (const Tensor* data : {&indices, &values}) sparse->ensure_extra().parts.push_back(alias(*data));
  return sparse;
}

Tensor make_sparse_compressed(Session& session, Layout layout, const Tensor& compressed, const Tensor& plain,
                              const Tensor& values, SizesView sizes) {
  Tensor sparse(new TensorImpl(sizes, contiguous_strides(sizes), values.dtype(), values.device()));
  sparse->layout = layout;
  sparse->storage = session.allocate(values.device(), 0);
  for (const Tensor* data : {&compressed, &plain, &values})
    sparse->ensure_extra().parts.push_back(alias(*data));
  return sparse;
}

Tensor sparse_alias(const Tensor& sparse) {
  Tensor other = alias(sparse);
  other->layout = sparse->layout;
  TensorExtra& extra = other->ensure_extra();
  extra.parts = sparse->extra->parts;
  extra.coalesced = sparse->extra->coalesced;
  return other;
}

void note_unknown_scratch(const Call& c) {
  estimated(c.session, c.session.allocate(c.device(), 0, Category::workspace));
}

// ATen/SparseTensorUtils.cpp, flatten_indices: one kernel, which counts into what it writes
// (native/sparse/FlattenIndicesCommon.h, arange).
Tensor flat_indices(Session& session, const Tensor& indices) {
  if (indices.size(0) == 1) return squeeze(indices, 0);
  return call<"arange">(session, indices.size(1), DType::i64, Value(), indices.device());
}

namespace {

// native/sparse/cuda/SparseCUDATensorMath.cu, add_out_dense_sparse_cuda: rows of values are added to the
// dense tensor seen as a matrix, unless coordinates are known to differ. Elements of a compressed matrix are added
// by one kernel without scratch memory.
void add_to_dense(Session& session, const Tensor& dense, const Tensor& sparse) {
  if (sparse->layout != Layout::sparse || sparse->extra->coalesced) return;
  const Tensor indices = flat_indices(session, sparse_part(sparse, 0)), values = sparse_part(sparse, 1);
  int64_t rows = 1;
  for (int64_t d = 0; d < sparse_part(sparse, 0).size(0); ++d) rows *= dense.size(d);
  const int64_t columns = dense.numel() / std::max<int64_t>(rows, 1);
  call<"index_add_">(session, view(dense, Sizes{rows, columns}), 0, indices,
                     view(values, Sizes{values.size(0), columns}));
}

void sum_with_dense(Call& c, const Tensor& dense, const Tensor& sparse) {
  if (sparse->layout == Layout::sparse_bsr || sparse->layout == Layout::sparse_bsc)
    c.error(fmt::format("the framework has no sum of a dense and a {} tensor", name_of(sparse->layout)));
  if (c.op.in_place) {
    if (c.arguments[0].tensor().is_sparse())
      c.error("a dense tensor cannot be added to a sparse one in place");
    add_to_dense(c.session, dense, sparse);
    return c.result(dense);
  }
  const Tensor sum = c.output_like(dense);
  c.allocate(0);
  call<"copy_">(c.session, sum, dense);
  add_to_dense(c.session, sum, sparse);
}

void sum_of_coordinates(Call& c, const Tensor& self, const Tensor& other) {
  // native/sparse/cuda/SparseCUDATensorMath.cu, add_out_sparse_cuda.
  Tensor added = sparse_part(other, 1);
  if (!is_one(c["alpha"])) added = call<"mul.Tensor">(c.session, added, c["alpha"]);
  const Tensor indices = joined(c.session, sparse_part(self, 0), sparse_part(other, 0), 1);
  const Tensor values = joined(c.session, sparse_part(self, 1), added, 0);
  if (!c.op.in_place) return c.result(make_sparse(c.session, indices, values, self.sizes()));
  self->extra->parts = {indices, values};
  c.result(self);
}

// cuSPARSE's own scratch memory is not known.
void sum_of_compressed_rows(Call& c, const Tensor& self, const Tensor& other) {
  const int64_t count = sparse_part(self, 2).size(0) + sparse_part(other, 2).size(0);
  const Tensor compressed = empty_like(sparse_part(self, 0));
  const Tensor plain = c.session.empty(Sizes{count}, sparse_part(self, 1).dtype(), self.device());
  const Tensor values = c.session.empty(Sizes{count}, self.dtype(), self.device());
  if (!c.op.in_place)
    return c.result(make_sparse_compressed(c.session, self->layout, compressed, plain, values, self.sizes()));
  self->extra->parts = {compressed, plain, values};
  c.result(self);
}

}  // namespace

bool sum_of_sparse(Call& c) {
  const Tensor &self = c.arguments[0].tensor(), &other = c.arguments[1].tensor();
  if (!self.is_sparse() && !other.is_sparse()) return false;
  if (self.sizes() != other.sizes())
    c.error(fmt::format("a sparse tensor must be of the other one's sizes, got {} and {}", describe(self),
                        describe(other)));
  const BelowAutograd below(c.session);
  if (!self.is_sparse() || !other.is_sparse()) {
    sum_with_dense(c, self.is_sparse() ? other : self, self.is_sparse() ? self : other);
  } else if (self->layout != other->layout) {
    c.error(fmt::format("the sum of a {} and a {} tensor: both must be of one layout", name_of(self->layout),
                        name_of(other->layout)));
  } else if (self->layout == Layout::sparse) {
    sum_of_coordinates(c, self, other);
  } else if (self->layout == Layout::sparse_csr) {
    sum_of_compressed_rows(c, self, other);
  } else {
    c.error(fmt::format("the framework has no sum of two {} tensors", name_of(self->layout)));
  }
  return true;
}

namespace {

void make_with_sizes_body(Call& c) {
  const Tensor &indices = c.tensor("indices"), &values = c.tensor("values");
  c.result(call<"_sparse_coo_tensor_with_dims_and_tensors">(c.session, indices.size(0), values.dim() - 1,
                                                            c["size"], indices, values, Value(), Value(),
                                                            Value(), Value(), c["is_coalesced"]));
}

// derivatives.yaml: what the gradient has at the places of the result, which is made of what was saved.
Gradients gradient_of_values(Backward& b) {
  const Tensor result = make_sparse(b.session, b("indices"), b("values"), b.ints("size"));
  result->extra->coalesced = b.given("is_coalesced") && b["is_coalesced"].boolean();
  return {call<"_values">(b.session, call<"sparse_mask">(b.session, b.grad(), result))};
}

constexpr Op kSparse[] = {
    composite_of("sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, ScalarType? "
                 "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? "
                 "is_coalesced=None) -> Tensor",
                 "a sparse tensor over indices and values", make_with_sizes_body,
                 {"i64[1,4] f32[4,3] (10 3)"}, {.takes = "indices.dim == 2, size.each >= 0"}),
    {.schema = "_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, "
               "Tensor indices, Tensor values, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=False, bool? is_coalesced=None) -> Tensor",
     .summary = "a sparse tensor over indices and values",
     .meta = make_meta,
     .derivatives = {{{"values"}, {"indices", "values"}, gradient_of_values}},
     .flops = free_of_flops,
     .examples = {"1 1 (10 3) i64[1,4] f32[4,3]"},
     .facts = {.takes = kSizeTaken, .node = "SparseCooTensorWithDimsAndTensorsBackward0"}},
    no_gradient("_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor "
                "values, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                "bool? pin_memory=None) -> Tensor",
                "a compressed matrix over indices and values", make_compressed_meta,
                {"i64[5] i64[6] f32[6] (4 3)"}, {.takes = kSizeTaken}),
    no_gradient("sparse_compressed_tensor.comp_plain_value_size(Tensor compressed_indices, Tensor "
                "plain_indices, Tensor values, SymInt[] size, *, ScalarType? dtype=None, Layout? "
                "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "a compressed matrix over indices and values", make_compressed_meta,
                {"i64[5] i64[6] f32[6] (4 3)"}, {.takes = kSizeTaken}),
    no_gradient(
        "_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, SymInt[] size, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor",
        "a sparse tensor over indices and values", make_meta, {"i64[1,4] f32[4,3] (10 3)"},
        {.takes = kSizeTaken})};

}  // namespace

Tables sparse_operators() {
  static constexpr Records tables[] = {kSparse};
  return tables;
}

}  // namespace metaprof
