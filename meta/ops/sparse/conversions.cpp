// Sparse tensors from others and into others: parts, transposes, dense tensors
// (native/TensorConversions.cpp, native/sparse/SparseTensor.cpp, native/TensorShape.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/no_gradient.h"
#include "meta/ops/sparse/family.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

const Tensor& of_layout(Call& c, Layout layout) {
  const Tensor& self = c.tensor("self");
  if (self->layout != layout)
    c.error(fmt::format("expects a {} tensor, got a {} one", name_of(layout), name_of(self->layout)));
  return self;
}

template <Layout layout, size_t part>
void part_meta(Call& c) {
  c.result(alias(sparse_part(of_layout(c, layout), part)));
}

void values_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if (!self.is_sparse()) c.error(fmt::format("expects a sparse tensor, got {}", describe(self)));
  c.result(alias(Tensor(self->extra->parts.back())));
}

// FunctionsManual.cpp, values_backward.
Gradients values_gradient(Backward& b) {
  const Tensor self = b("self");
  if (self->layout == Layout::sparse) {
    Tensor gradient = make_sparse(b.session, sparse_part(self, 0), b.grad(), self.sizes());
    gradient->extra->coalesced = true;
    return {gradient};
  }
  return {make_sparse_compressed(b.session, self->layout, sparse_part(self, 0), sparse_part(self, 1),
                                 b.grad(), self.sizes())};
}

// --- dense

void to_dense_kernel(Call& c) {
  const Tensor& self = c.tensor("self");
  const BelowAutograd below(c.session);
  const DType dtype = c.dtype("dtype", self.dtype());
  if (self->layout != Layout::sparse) return c.result(dense_of_compressed(c.session, self, dtype));
  const Tensor dense = call<"zeros">(c.session, self.sizes(), dtype, Value(), self.device());
  call<"add_.Tensor">(c.session, dense, self);
  c.result(dense);
}

void to_dense_body(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.is_sparse()) return c.result(call<"_to_dense">(c.session, self, c["dtype"], c["masked_grad"]));
  c.result(c.given("dtype") ? call<"to.dtype">(c.session, self, c["dtype"]) : self);
}

// FunctionsManual.cpp, to_dense_backward.
Gradients to_dense_gradient(Backward& b) {
  const Tensor self = b("self");
  if (self->layout != Layout::sparse) {
    const Tensor mask = coordinates_of_compressed(b.session, self);
    const Tensor masked = call<"sparse_mask">(b.session, b.grad(), mask);
    return {compressed_like(b.session, masked, self)};
  }
  return {call<"sparse_mask">(b.session, b.grad(), call<"coalesce">(b.session, self))};
}

constexpr const char* kCoordinates = "f32[4,3]sparse(i64[2,5] f32[5])";

constexpr Op part_of(std::string_view schema, std::string_view summary, void (*meta)(Call&)) {
  return no_gradient(schema, summary, meta, {kCoordinates}, {.cuts_history = true});
}

constexpr Op kConversions[] = {
    part_of("_values(Tensor(a) self) -> Tensor(a)", "values of coordinates, without history",
            part_meta<Layout::sparse, 1>),
    part_of("_indices(Tensor(a) self) -> Tensor(a)", "coordinates", part_meta<Layout::sparse, 0>),
    part_of("indices(Tensor(a) self) -> Tensor(a)", "coordinates", part_meta<Layout::sparse, 0>),
    {.schema = "values(Tensor(a) self) -> Tensor(a)",
     .summary = "values of a sparse tensor",
     .meta = values_meta,
     .derivatives = {{{"self"}, {"self"}, values_gradient}},
     .flops = free_of_flops,
     .examples = {"f32[1,3]sparse(i64[2,1] f32[1])"}},
    composite_of("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
                 "all elements, those that are not there as 0", to_dense_body, {kCoordinates}),
    {.schema = "_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor",
     .summary = "all elements, those that are not there as 0",
     .meta = to_dense_kernel,
     .derivatives = {{{"self"}, {"self"}, to_dense_gradient}},
     .flops = free_of_flops,
     .examples = {kCoordinates},
     .facts = {.takes = "self sparse", .node = "ToDenseBackward0"}}};

}  // namespace

// TensorShape.cpp, transpose: of coordinates a clone whose rows change places; of compressed ones the same parts.
Tensor transposed_sparse(Call& c, int64_t dim0, int64_t dim1) {
  const BelowAutograd below(c.session);
  const Tensor& self = c.tensor("self");
  const auto a = size_t(wrap_dim(dim0, self.dim())), b = size_t(wrap_dim(dim1, self.dim()));
  Sizes sizes = self.sizes();
  std::swap(sizes[a], sizes[b]);
  if (self->layout == Layout::sparse) {
    const Tensor copy = clone(self);
    const Tensor indices = sparse_part(copy, 0);
    if (std::max(a, b) >= size_t(indices.size(0)))
      c.error("of a transpose of dense dimensions of a sparse tensor nothing is known");
    Tensor sparse = make_sparse(c.session, indices, sparse_part(copy, 1), sizes);
    if (a != b) zeros_like(select(indices, 0, int64_t(a)));
    return sparse;
  }
  Tensor values = sparse_part(self, 2);
  if (a != b && values.dim() == 3) values = transpose(values, 1, 2);
  return make_sparse_compressed(c.session, a == b ? self->layout : flipped(self->layout),
                                sparse_part(self, 0), sparse_part(self, 1), values, sizes);
}

Tables sparse_conversion_operators() {
  static constexpr Records tables[] = {kConversions};
  return tables;
}

}  // namespace metaprof
