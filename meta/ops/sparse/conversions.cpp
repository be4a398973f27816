// Sparse tensors from others and into others: parts, transposes, dense tensors, compressed rows
// (native/TensorConversions.cpp, native/sparse/SparseTensor.cpp, native/TensorShape.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include "meta/autograd/backward.h"
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
  if (!self.is_sparse()) return c.result(self);
  const BelowAutograd below(c.session);
  const DType dtype = c.dtype("dtype", self.dtype());
  if (self->layout != Layout::sparse) return c.result(dense_of_compressed(c.session, self, dtype));
  const Tensor dense = call<"zeros">(c.session, self.sizes(), dtype, Value(), self.device());
  call<"add_.Tensor">(c.session, dense, self);
  c.result(dense);
}

// FunctionsManual.cpp, to_dense_backward.
Gradients to_dense_gradient(Backward& b) {
  const Tensor self = b("self");
  if (self->layout != Layout::sparse) {
    const Tensor mask = coordinates_of_compressed(b.session, self);
    const Tensor masked = call<"sparse_mask">(b.session, b.grad(), mask);
    return {self->layout == Layout::sparse_csr ? call<"_to_sparse_csr">(b.session, masked) : masked};
  }
  return {call<"sparse_mask">(b.session, b.grad(), call<"coalesce">(b.session, self))};
}

// FunctionsManual.cpp, to_sparse_backward: dense, or by coordinates again.
Gradients to_rows_gradient(Backward& b) {
  const Tensor gradient = b.grad();
  const Layout before = b.shape("self")->layout;
  if (before == Layout::strided && gradient.is_sparse()) return {call<"to_dense">(b.session, gradient)};
  if (before != Layout::sparse || gradient->layout != Layout::sparse_csr) return {gradient};
  return {coordinates_of_compressed(b.session, gradient)};
}

// --- compressed rows

// _convert_indices_from_coo_to_csr: where each row begins; columns and values are those of the coordinates.
Tensor rows_of_coordinates(const Call& c, const Tensor& self) {
  const Tensor coalesced = call<"coalesce">(c.session, self);
  const Tensor begins = c.session.empty(Sizes{self.size(0) + 1}, DType::i64, self.device());
  return make_sparse_compressed(c.session, Layout::sparse_csr, begins,
                                select(sparse_part(coalesced, 0), 0, 1), sparse_part(coalesced, 1),
                                self.sizes());
}

// TensorConversions.cpp, _compressed_to_block_compressed and its like: the columns become coordinates of one long row,
// which are sorted into rows.
Tensor rows_of_columns(const Call& c, const Tensor& self) {
  Session& s = c.session;
  const Tensor begins = sparse_part(self, 0), plain = sparse_part(self, 1), values = sparse_part(self, 2);
  const int64_t count = values.size(0), columns = self.size(1);
  const auto integers = [&](SizesView sizes) { return s.empty(sizes, DType::i64, self.device()); };
  Tensor count_of_one = integers(Sizes{1});
  const Tensor offsets = call<"cumsum">(s, count_of_one, -1);
  count_of_one = Tensor();
  Tensor shifted =
      add(view(begins.size(0) > columns ? narrow(begins, 0, 0, columns) : begins, Sizes{1, columns}),
          unsqueeze(offsets, -1));
  const Tensor all = integers(Sizes{columns + 1});
  copy_(narrow(all, 0, 0, columns), view(shifted, Sizes{columns}));
  shifted = Tensor();
  const Tensor coordinates = integers(Sizes{2, count});
  { const Tensor batch = integers(Sizes{count}), first = integers(Sizes{count}); }
  const Tensor order = integers(Sizes{count});
  Tensor sorted_places = call_all<"sort">(s, order)[1];
  const Tensor places = index_select(coordinates, 1, sorted_places),
               sorted_values = index_select(values, 0, sorted_places);
  Tensor long_rows = integers(Sizes{self.size(0) + 1});
  const Tensor rows = call<"zeros">(s, Sizes{1, self.size(0) + 1}, DType::i64, Value(), self.device());
  { const Tensor lengths = integers(Sizes{1, self.size(0)}); }
  long_rows = Tensor();
  return make_sparse_compressed(s, Layout::sparse_csr, view(rows, Sizes{self.size(0) + 1}),
                                select(places, 0, 1), sorted_values, self.sizes());
}

void to_rows_kernel(Call& c) {
  const BelowAutograd below(c.session);
  const Tensor& self = c.tensor("self");
  if (self.dim() != 2) c.error(fmt::format("expects a matrix, got {}", describe(self)));
  switch (self->layout) {
    case Layout::sparse_csr: return c.result(self);
    case Layout::sparse: return c.result(rows_of_coordinates(c, self));
    case Layout::strided: return c.result(rows_of_dense(c.session, self));
    case Layout::sparse_csc: return c.result(rows_of_columns(c, self));
    default:
      c.error(fmt::format("of compressed rows from a {} tensor nothing is known", name_of(self->layout)));
  }
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
     .host_code = {},
     .derivatives = {{{"self"}, {"self"}, values_gradient}},
     .flops = free_of_flops,
     .examples = {"f32[1,3]sparse(i64[2,1] f32[1])"}},
    composite_of("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
                 "all elements, those that are not there as 0",
                 [](Call& c) {
                   c.result(call<"_to_dense">(c.session, c.tensor("self"), c["dtype"], c["masked_grad"]));
                 },
                 {kCoordinates}),
    {.schema = "_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor",
     .summary = "all elements, those that are not there as 0",
     .meta = to_dense_kernel,
     .host_code = {},
     .derivatives = {{{"self"}, {"self"}, to_dense_gradient}},
     .flops = free_of_flops,
     .examples = {kCoordinates},
     .facts = {.node = "ToDenseBackward0"}},
    composite_of("to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor", "a matrix by compressed rows",
                 [](Call& c) { c.result(call<"_to_sparse_csr">(c.session, c.tensor("self"))); },
                 {kCoordinates}),
    {.schema = "_to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor",
     .summary = "a matrix by compressed rows",
     .meta = to_rows_kernel,
     .host_code = {},
     .derivatives = {{{"self"}, {}, to_rows_gradient}},
     .flops = free_of_flops,
     .examples = {kCoordinates},
     .facts = {.node = "ToSparseCsrBackward0"}}};

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
  if (self->layout != Layout::sparse_csr && self->layout != Layout::sparse_csc)
    c.error(fmt::format("of a transposed {} tensor nothing is known", name_of(self->layout)));
  const Layout other = self->layout == Layout::sparse_csr ? Layout::sparse_csc : Layout::sparse_csr;
  return make_sparse_compressed(c.session, a == b ? self->layout : other, sparse_part(self, 0),
                                sparse_part(self, 1), sparse_part(self, 2), sizes);
}

Tables sparse_conversion_operators() {
  static constexpr Records tables[] = {kConversions};
  return tables;
}

}  // namespace metaprof
