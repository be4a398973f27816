// Sparse tensors from dense ones, dense ones from compressed rows and columns, coordinates from these
// (native/TensorConversions.cpp, PyTorch 2.11). How many elements are not 0 is data: none, unless the program says it.

#include <fmt/format.h>

#include <array>

#include "meta/autograd/backward.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/sizes_by_data.h"
#include "meta/ops/sparse/family.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

bool is_by_rows(const Tensor& self) { return self->layout == Layout::sparse_csr; }

void check_compressed(const Tensor& self) {
  if (!is_by_rows(self) && self->layout != Layout::sparse_csc)
    fail("of the elements of a {} tensor one by one nothing is known", name_of(self->layout));
}

// Places of what is not 0 or, where only the first dimensions become coordinates, of slices that are not all 0: as if
// every element of these were different from 0.
Tensor coordinates_in(Session& s, const Tensor& self, int64_t sparse_dims) {
  if (sparse_dims == self.dim()) return clone(transpose(call<"nonzero">(s, self), 0, 1));
  const SizesByData told = s.sizes_by_data;
  const int64_t slices = told.first_result.empty() ? 0 : told.first_result[0];
  int64_t count = slices;
  for (int64_t d = sparse_dims; d < self.dim(); ++d) count = multiply(count, self.size(d));
  const Sizes elements{count}, unique{sparse_dims, slices};
  Scoped<SizesByData> sizes(s.sizes_by_data,
                            {told.first_result.empty() ? SizesView() : SizesView(elements), told.assumed});
  const Tensor places = transpose(call<"nonzero">(s, self), 0, 1);
  s.sizes_by_data.first_result = unique;
  Results found = call_all<"unique_dim">(s, call<"narrow">(s, places, 0, 0, sparse_dims), 1);
  return contiguous(found[0]);
}

// dense_to_sparse: coordinates, then the values there.
Tensor coordinates_of_dense(Session& s, const Tensor& self, int64_t sparse_dims) {
  const Tensor indices = coordinates_in(s, self, sparse_dims);
  const int64_t count = indices.size(1);
  Sizes sizes{count};
  for (int64_t d = sparse_dims; d < self.dim(); ++d) sizes.push_back(self.size(d));
  const Tensor found = s.empty(sizes, self.dtype(), self.device());
  Tensor sparse = make_sparse(s, indices, count > 0 ? clone(found) : found, self.sizes());
  sparse->extra->coalesced = true;
  return sparse;
}

void to_coordinates(Call& c, int64_t sparse_dims) {
  const BelowAutograd below(c.session);
  const Tensor& self = c.tensor("self");
  if (self->layout == Layout::sparse) return c.result(self);
  c.result(self.is_sparse() ? coordinates_of_compressed(c.session, self)
                            : coordinates_of_dense(c.session, self, sparse_dims));
}

void to_sparse_kernel(Call& c) {
  const auto layout = c.given("layout") ? static_cast<Layout>(c.integer("layout")) : Layout::sparse;
  const Tensor& self = c.tensor("self");
  if (layout == Layout::sparse) return to_coordinates(c, self.dim());
  if (layout != Layout::sparse_csr)
    c.error(fmt::format("of a {} tensor from another one nothing is known", name_of(layout)));
  const BelowAutograd below(c.session);
  c.result(call<"_to_sparse_csr">(c.session, self));
}

// FunctionsManual.cpp, to_sparse_backward: as `self` was.
Gradients to_sparse_gradient(Backward& b) {
  const Layout layout = b.shape("self")->layout;
  const Tensor gradient = b.grad();
  if (layout == gradient->layout) return {gradient};
  if (layout == Layout::strided) return {call<"to_dense">(b.session, gradient)};
  if (layout == Layout::sparse) return {coordinates_of_compressed(b.session, gradient)};
  if (layout == Layout::sparse_csr) return {call<"_to_sparse_csr">(b.session, gradient)};
  fail("of the gradient of a {} tensor that became another one nothing is known", name_of(layout));
}

constexpr Op conversion(std::string_view schema, std::string_view node, std::string_view summary,
                        std::string_view example, void (*kernel)(Call&)) {
  return {.schema = schema,
          .summary = summary,
          .meta = kernel,
          .host_code = {},
          .derivatives = {{{"self"}, {}, to_sparse_gradient}},
          .flops = input_flops,
          .examples = {example},
          .facts = {.node = node, .reads_data = true, .host_reads = true}};
}

constexpr Facts kReadsData = {.cudagraph_unsafe = true, .reads_data = true};  // of composites

constexpr Op kFromDense[] = {
    composite_of(
        "to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", "coordinates of what is not 0",
        [](Call& c) {
          c.result(call<"_to_sparse.sparse_dim">(c.session, c.tensor("self"), c["sparse_dim"]));
        },
        {"f32[2,3] 2"}, kReadsData),
    composite_of(
        "to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> "
        "Tensor",
        "coordinates of what is not 0, or another sparse layout",
        [](Call& c) {
          c.result(
              call<"_to_sparse">(c.session, c.tensor("self"), c["layout"], c["blocksize"], c["dense_dim"]));
        },
        {"f32[2,3]"}, kReadsData),
    conversion("_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", "ToSparseBackward0",
               "coordinates of what is not 0", "f32[2,3] 2",
               [](Call& c) { to_coordinates(c, c.integer("sparse_dim")); }),
    conversion(
        "_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> "
        "Tensor",
        "ToSparseBackward1", "coordinates of what is not 0, or another sparse layout", "f32[2,3]",
        to_sparse_kernel)};

}  // namespace

// _convert_indices_from_csr_to_coo: rows and columns of each element, over the same values.
Tensor coordinates_of_compressed(Session& session, const Tensor& self) {
  check_compressed(self);
  const Tensor plain = sparse_part(self, 1);
  const Tensor indices = session.empty(Sizes{2, plain.size(0)}, plain.dtype(), self.device());
  Tensor sparse = make_sparse(session, indices, sparse_part(self, 2), self.sizes());
  sparse->extra->coalesced = is_by_rows(self);
  return sparse;
}

// dense_to_sparse_compressed: of a mask of what is not 0 the places, where each row begins, and the values.
Tensor rows_of_dense(Session& s, const Tensor& self) {
  const Tensor mask = call<"ne.Scalar">(s, self, 0);
  const Tensor places = call<"nonzero">(s, mask);
  const Tensor begins = s.empty(Sizes{self.size(0) + 1}, DType::i64, self.device());
  const Tensor flat = call<"nonzero">(s, reshape(mask, Sizes{-1}));
  const Tensor values = index_select(reshape(self, Sizes{-1}), 0, select(flat, 1, 0));
  return make_sparse_compressed(s, Layout::sparse_csr, begins, select(places, 1, 1), values, self.sizes());
}

// sparse_compressed_to_dense: as of a batch of one. Where the rows of all batches begin is joined from parts, and the
// elements are put at their places by batch, row and column (index_put_).
Tensor dense_of_compressed(Session& s, const Tensor& self, DType dtype) {
  check_compressed(self);
  const int64_t count = sparse_part(self, 2).size(0), rows = sparse_part(self, 0).size(0) - 1;
  const auto integers = [&](int64_t n) { return s.empty(Sizes{n}, DType::i64, self.device()); };
  Tensor dense = call<"zeros">(s, self.sizes(), dtype, Value(), self.device());
  Tensor batches = integers(1);
  const Tensor batch_of_each = integers(count);
  batches = Tensor();
  Tensor offset = integers(1);
  Tensor repeated = integers(rows), shifted = integers(rows), begins = integers(rows);
  Tensor end = integers(1), scaled_end = integers(1);
  const Tensor all_begins = integers(rows + 1);
  scaled_end = Tensor();
  repeated = Tensor();
  end = Tensor();
  shifted = Tensor();
  begins = Tensor();
  offset = Tensor();
  const Tensor places = s.empty(Sizes{2, count}, DType::i64, self.device());
  { const Tensor lengths = integers(count); }
  std::array<Tensor, 5>
      linear;  // the linear place of each element: of three indices, wrapped, scaled and added up
  for (Tensor& part : linear) part = integers(count);
  return dense;
}

Tables dense_conversion_operators() {
  static constexpr Records tables[] = {kFromDense};
  return tables;
}

}  // namespace metaprof
