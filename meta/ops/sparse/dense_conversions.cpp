// Sparse tensors from dense ones, dense ones from compressed rows and columns, coordinates from these
// (native/TensorConversions.cpp, PyTorch 2.11). How many elements are not 0 is data: none, unless the program says it.

#include <fmt/format.h>

#include <array>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/sizes_by_data.h"
#include "meta/ops/sparse/family.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

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
  const Tensor& self = c.tensor("self");
  const BelowAutograd below(c.session);
  switch (c.given("layout") ? c.integer("layout") : 1) {  // numbers of c10/core/Layout.h
    case 1: return to_coordinates(c, self.dim());
    case 2: return c.result(call<"_to_sparse_csr">(c.session, self));
    case 4: return c.result(call<"_to_sparse_csc">(c.session, self));
    case 5: return c.result(call<"_to_sparse_bsr">(c.session, self, c["blocksize"]));
    case 6: return c.result(call<"_to_sparse_bsc">(c.session, self, c["blocksize"]));
    default: c.error(fmt::format("{} is no sparse layout", c.integer("layout")));
  }
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
    conversion("_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) "
               "-> Tensor",
               "ToSparseBackward1", "coordinates of what is not 0, or another sparse layout", "f32[2,3]",
               to_sparse_kernel)};

}  // namespace

Tables dense_conversion_operators() {
  static constexpr Records tables[] = {kFromDense};
  return tables;
}

}  // namespace metaprof
