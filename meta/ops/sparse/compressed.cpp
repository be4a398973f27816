// Compressed matrices (CSR, CSC, BSR, BSC) of dense ones, of coordinates and of each other
// (native/TensorConversions.cpp, PyTorch 2.11). How many elements or blocks of a dense matrix are not 0 is data: none,
// unless the program says it.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/sizes_by_data.h"
#include "meta/ops/sparse/family.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

bool has_blocks(Layout layout) { return layout == Layout::sparse_bsr || layout == Layout::sparse_bsc; }
bool lies_by_rows(Layout layout) { return layout == Layout::sparse_csr || layout == Layout::sparse_bsr; }

// How many rows and columns one element of the matrix's values has: 1 and 1, or those of a block.
Sizes block_of(const Tensor& self) {
  if (!has_blocks(self->layout)) return {1, 1};
  const Tensor values = sparse_part(self, 2);
  return {values.size(1), values.size(2)};
}

// --- of dense matrices

// _tile_tensor: blocks one after the other.
Tensor tiles(const Tensor& dense, SizesView block) {
  const Sizes split{dense.size(0) / block[0], block[0], dense.size(1) / block[1], block[1]};
  return contiguous(transpose(reshape(dense, split), 1, 2));
}

// Blocks in which something is not 0: counted in 64 bits.
Tensor blocks_with_elements(const Tensor& mask, SizesView block) {
  Tensor tiled = tiles(mask, block);
  const Tensor counts = sum(tiled, Sizes{2, 3}, false);
  Tensor some = ne(counts, 0);
  tiled = Tensor();
  return some;
}

// dense_to_sparse_compressed: of a mask of what is not 0 the places, where each row (or column) begins, and the values.
Tensor compressed_of_dense(Session& s, const Tensor& self, Layout layout, SizesView block) {
  const bool blocks = has_blocks(layout), rows = lies_by_rows(layout);
  const Tensor mask = ne(self, 0);
  Tensor values = blocks ? tiles(self, block) : self;
  const Tensor some = blocks ? blocks_with_elements(mask, block) : mask;
  const auto by_lines = [&](const Tensor& m) { return rows ? m : transpose(m, 0, 1); };
  const Tensor places = call<"nonzero">(s, by_lines(some));
  const int64_t lines = some.size(rows ? 0 : 1);
  const Tensor begins = s.empty(Sizes{lines + 1}, DType::i64, self.device());
  {
    const Tensor which = select(call<"nonzero">(s, reshape(by_lines(some), Sizes{-1})), 1, 0);
    values = index_select(call<"flatten.using_ints">(s, by_lines(values), 0, 1), 0, which);
  }
  return make_sparse_compressed(s, layout, begins, select(places, 1, 1), values, self.sizes());
}

// --- of coordinates

// _convert_indices_from_coo_to_csr: where each row begins; columns and values are those of the coordinates.
Tensor rows_of_coordinates(Session& s, const Tensor& self) {
  const Tensor coalesced = call<"coalesce">(s, self);
  const Tensor begins = s.empty(Sizes{self.size(0) + 1}, DType::i64, self.device());
  return make_sparse_compressed(s, Layout::sparse_csr, begins, select(sparse_part(coalesced, 0), 0, 1),
                                sparse_part(coalesced, 1), self.sizes());
}

// coo_to_sparse_csc: the rows of the transposed one.
Tensor columns_of_coordinates(Session& s, const Tensor& self) {
  const Tensor rows = rows_of_coordinates(s, call<"transpose.int">(s, self, 0, 1));
  return make_sparse_compressed(s, Layout::sparse_csc, sparse_part(rows, 0), sparse_part(rows, 1),
                                sparse_part(rows, 2), self.sizes());
}

// --- of each other

// sparse_compressed_to_flipped: coordinates of one long row or column, which are sorted the other way.
Tensor sorted_the_other_way(Session& s, const Tensor& self) {
  const Tensor begins = sparse_part(self, 0), values = sparse_part(self, 2);
  const int64_t count = values.size(0), lines = begins.size(0) - 1;
  const size_t across = lies_by_rows(self->layout) ? 1 : 0;
  const int64_t others = self.size(int64_t(across)) / block_of(self)[across];
  const auto integers = [&](SizesView sizes) { return s.empty(sizes, DType::i64, self.device()); };
  Tensor count_of_one = integers(Sizes{1});
  const Tensor offsets = call<"cumsum">(s, count_of_one, -1);
  count_of_one = Tensor();
  Tensor shifted = add(view(narrow(begins, 0, 0, lines), Sizes{1, lines}), unsqueeze(offsets, -1));
  const Tensor all = integers(Sizes{lines + 1});
  copy_(narrow(all, 0, 0, lines), view(shifted, Sizes{lines}));
  shifted = Tensor();
  const Tensor coordinates = integers(Sizes{2, count});
  { const Tensor batch = integers(Sizes{count}), first = integers(Sizes{count}); }
  const Tensor order = integers(Sizes{count});
  Tensor sorted_places = call_all<"sort">(s, order)[1];
  const Tensor places = index_select(coordinates, 1, sorted_places),
               sorted_values = index_select(values, 0, sorted_places);
  Tensor long_lines = integers(Sizes{others + 1});
  const Tensor new_begins = call<"zeros">(s, Sizes{1, others + 1}, DType::i64, Value(), self.device());
  { const Tensor lengths = integers(Sizes{1, others}); }
  long_lines = Tensor();
  return make_sparse_compressed(s, flipped(self->layout), view(new_begins, Sizes{others + 1}),
                                select(places, 0, 1), sorted_values, self.sizes());
}

// _compressed_to_block_compressed_cpu: made on the host and copied. How many blocks have elements is data: as if no two
// elements were in one.
Tensor blocks_of(const Call& c, const Tensor& self, SizesView block) {
  note_assumed(c);
  Session& s = c.session;
  const bool rows = lies_by_rows(self->layout);
  const int64_t most = self.size(0) / block[0] * (self.size(1) / block[1]);
  const int64_t count = std::min(sparse_part(self, 2).size(0), most);
  const DType index = sparse_part(self, 0).dtype();
  const Tensor values = s.empty(Sizes{count, block[0], block[1]}, self.dtype(), self.device());
  const int64_t lines = rows ? self.size(0) / block[0] : self.size(1) / block[1];
  const Tensor begins = s.empty(Sizes{lines + 1}, index, self.device());
  const Tensor plain = s.empty(Sizes{count}, index, self.device());
  return make_sparse_compressed(s, rows ? Layout::sparse_bsr : Layout::sparse_bsc, begins, plain, values,
                                self.sizes());
}

Tensor compressed_of_compressed(const Call& c, const Tensor& self, Layout layout, SizesView block) {
  if (self->layout == layout) return self;
  if (has_blocks(self->layout) && !has_blocks(layout))
    c.error(
        fmt::format("the framework makes no {} matrix of a {} one", name_of(layout), name_of(self->layout)));
  if (has_blocks(self->layout) && block_of(self) != Sizes(block.begin(), block.end()))
    c.error(fmt::format("blocks keep their sizes, {} here", to_string(SizesView(block_of(self)))));
  const Tensor turned =
      lies_by_rows(self->layout) == lies_by_rows(layout) ? self : sorted_the_other_way(c.session, self);
  return turned->layout == layout ? turned : blocks_of(c, turned, block);
}

// --- operators

Tensor compressed(const Call& c, Layout layout, SizesView block) {
  const Tensor& self = c.tensor("self");
  Session& s = c.session;
  switch (self->layout) {
    case Layout::strided: return compressed_of_dense(s, self, layout, block);
    case Layout::sparse: {
      const Tensor lines =
          lies_by_rows(layout) ? rows_of_coordinates(s, self) : columns_of_coordinates(s, self);
      return has_blocks(layout) ? blocks_of(c, lines, block) : lines;
    }
    default: return compressed_of_compressed(c, self, layout, block);
  }
}

template <Layout layout>
void compress_kernel(Call& c) {
  const BelowAutograd below(c.session);
  const Tensor& self = c.tensor("self");
  if (self.dim() != 2) c.error(fmt::format("expects a matrix, got {}", describe(self)));
  Sizes block{1, 1};
  if constexpr (layout == Layout::sparse_bsr || layout == Layout::sparse_bsc) {
    block = c.ints("blocksize");
    if (block.size() != 2 || block[0] < 1 || block[1] < 1 || self.size(0) % block[0] != 0 ||
        self.size(1) % block[1] != 0)
      c.error(fmt::format("blocks of {} do not fill {}", to_string(SizesView(block)), describe(self)));
  }
  c.result(compressed(c, layout, block));
}

// FunctionsManual.cpp, to_sparse_backward: as `self` was.
Gradients compress_gradient(Backward& b) {
  const Tensor gradient = b.grad();
  const Layout before = b.shape("self")->layout;
  if (gradient->layout == before || !gradient.is_sparse()) return {gradient};
  switch (before) {
    case Layout::strided: return {call<"to_dense">(b.session, gradient)};
    case Layout::sparse: return {coordinates_of_compressed(b.session, gradient)};
    case Layout::sparse_csr: return {call<"_to_sparse_csr">(b.session, gradient)};
    case Layout::sparse_csc: return {call<"_to_sparse_csc">(b.session, gradient)};
    default: fail("of the gradient of a {} matrix that became another one nothing is known", name_of(before));
  }
}

constexpr Op compression(std::string_view schema, std::string_view summary, void (*kernel)(Call&),
                         const Examples& examples) {
  return {.schema = schema,
          .summary = summary,
          .meta = kernel,
          .derivatives = {{{"self"}, {}, compress_gradient}},
          .flops = free_of_flops,
          .examples = examples};
}

template <FixedString name>
void lines_body(Call& c) {
  c.result(call<name>(c.session, c.tensor("self"), c["dense_dim"]));
}

template <FixedString name>
void blocks_body(Call& c) {
  const Tensor& self = c.tensor("self");
  c.result(call<name>(c.session, self, c["blocksize"], c["dense_dim"]));
}

constexpr const char* kMatrix = "f32[4,6]sparse(i64[2,5] f32[5])";

constexpr Op kCompressed[] = {
    composite_of("to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor", "a matrix by compressed rows",
                 lines_body<"_to_sparse_csr">, {kMatrix, "f32[4,6]"}),
    composite_of("to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor",
                 "a matrix by compressed columns", lines_body<"_to_sparse_csc">, {kMatrix, "f32[4,6]"}),
    composite_of("to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
                 "a matrix by compressed rows of blocks", blocks_body<"_to_sparse_bsr">, {"f32[4,6] (2 3)"}),
    composite_of("to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
                 "a matrix by compressed columns of blocks", blocks_body<"_to_sparse_bsc">,
                 {"f32[4,6] (2 3)"}),
    compression("_to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor", "a matrix by compressed rows",
                compress_kernel<Layout::sparse_csr>, {kMatrix, "f32[4,6]"}),
    compression("_to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor",
                "a matrix by compressed columns", compress_kernel<Layout::sparse_csc>, {kMatrix, "f32[4,6]"}),
    compression("_to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
                "a matrix by compressed rows of blocks", compress_kernel<Layout::sparse_bsr>,
                {"f32[4,6] (2 3)"}),
    compression("_to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
                "a matrix by compressed columns of blocks", compress_kernel<Layout::sparse_bsc>,
                {"f32[4,6] (2 3)"})};

}  // namespace

Layout flipped(Layout layout) {
  switch (layout) {
    case Layout::sparse_csr: return Layout::sparse_csc;
    case Layout::sparse_csc: return Layout::sparse_csr;
    case Layout::sparse_bsr: return Layout::sparse_bsc;
    default: return Layout::sparse_bsr;
  }
}

// sparse_compressed_to_sparse: rows and columns of each element, over the same values; those of a block's elements are
// its own and those of its corner added.
Tensor coordinates_of_compressed(Session& s, const Tensor& self) {
  const Tensor plain = sparse_part(self, 1), values = sparse_part(self, 2);
  Tensor indices = s.empty(Sizes{2, plain.size(0)}, plain.dtype(), self.device());
  bool coalesced = self->layout == Layout::sparse_csr;
  Tensor elements = values;
  if (has_blocks(self->layout)) {
    const auto integers = [&](SizesView sizes) { return s.empty(sizes, plain.dtype(), self.device()); };
    const Sizes block = block_of(self);
    const int64_t count = values.size(0), in_block = block[0] * block[1];
    const Tensor inside = integers(Sizes{2, in_block});
    {
      Tensor places = integers(Sizes{std::max(block[0], block[1])});
      const Tensor both = integers(Sizes{2, in_block});
      places = Tensor();
    }
    const Tensor sizes = integers(Sizes{2});
    const Tensor corners = integers(Sizes{2, count});
    indices = integers(Sizes{2, count * in_block});
    elements = view(values, Sizes{count * in_block});
    coalesced = self->layout == Layout::sparse_bsr && block[0] == 1;
  }
  Tensor sparse = make_sparse(s, indices, elements, self.sizes());
  sparse->extra->coalesced = coalesced;
  return sparse;
}

Tensor compressed_like(Session& s, const Tensor& coordinates, const Tensor& other) {
  switch (other->layout) {
    case Layout::sparse_csr: return call<"_to_sparse_csr">(s, coordinates);
    case Layout::sparse_csc: return call<"_to_sparse_csc">(s, coordinates);
    case Layout::sparse_bsr: return call<"_to_sparse_bsr">(s, coordinates, block_of(other));
    case Layout::sparse_bsc: return call<"_to_sparse_bsc">(s, coordinates, block_of(other));
    default: return coordinates;
  }
}

// sparse_compressed_to_dense: as of a batch of one. Where the rows of all batches begin is joined from parts, and the
// elements are put at their places by batch, row and column (index_put_); blocks are then put beside each other.
Tensor dense_of_compressed(Session& s, const Tensor& self, DType dtype) {
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
  const Tensor sum = integers(count);  // the linear place of each element: of three indices,
  {
    std::array<Tensor, 4> linear;  // wrapped, scaled and added up
    for (Tensor& part : linear) part = integers(count);
  }
  if (has_blocks(self->layout)) {
    const Sizes block = block_of(self);
    const Sizes tiled{self.size(0) / block[0], self.size(1) / block[1], block[0], block[1]};
    dense = reshape(transpose(view(dense, tiled), 1, 2), self.sizes());
  }
  return dense;
}

Tables compressed_operators() {
  static constexpr Records tables[] = {kCompressed};
  return tables;
}

}  // namespace metaprof
