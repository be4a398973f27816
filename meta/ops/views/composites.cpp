// Views that are made of other views, and what is a view only where that is possible.

#include <fmt/format.h>

#include "meta/ops/rules/formulas.h"
#include "meta/ops/views/family.h"
#include "meta/ops/views/views.h"
#include "meta/session/marks.h"

namespace metaprof {
namespace {

// --- Sizes

void reshape_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = infer_size(c.ints("shape"), self.numel());
  Sizes strides;
  if (self->contiguous) return c.result(view(self, sizes));
  if (view_strides(self.sizes(), self.strides(), sizes, strides))
    return c.result(call<"_reshape_alias">(c.session, self, sizes, strides));
  c.result(call<"_unsafe_view">(c.session, clone(self, MemoryFormat::contiguous), sizes));
}

void flatten_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto first = size_t(dim_of(c, "start_dim")), last = size_t(dim_of(c, "end_dim"));
  if (self.dim() == 0) return c.result(reshape(self, Sizes{1}));
  if (first > last) c.error(fmt::format("start_dim {} comes after end_dim {}", first, last));
  if (first == last) return c.result(self);
  Sizes sizes;
  int64_t joined = 1;
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if (d < first || d > last) {
      sizes.push_back(self.sizes()[d]);
    } else {
      joined *= self.sizes()[d];
      if (d == last) sizes.push_back(joined);
    }
  }
  c.result(reshape(self, sizes));
}

void unflatten_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto dim = size_t(dim_of(c));
  Sizes sizes(self.sizes().begin(), self.sizes().begin() + dim);
  const Sizes parts = infer_size(c.ints("sizes"), self.sizes()[dim]);
  sizes.append(parts.begin(), parts.end());
  sizes.append(self.sizes().begin() + dim + 1, self.sizes().end());
  c.result(view(self, sizes));
}

void contiguous_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto format = static_cast<MemoryFormat>(c.integer("memory_format"));
  const bool is =
      format == MemoryFormat::contiguous ? self->contiguous : is_channels_last(self.sizes(), self.strides());
  c.result(is ? self : clone(self, format));
}

void ravel_body(Call& c) { c.result(view(contiguous(c.tensor("self")), Sizes{-1})); }

void expand_as_body(Call& c) { c.result(expand(c.tensor("self"), c.tensor("other").sizes())); }

void broadcast_tensors_body(Call& c) {
  Sizes sizes;
  for (const Tensor& tensor : c.tensors("tensors")) sizes = broadcast(sizes, tensor.sizes());
  Value::Tensors expanded;
  for (const Tensor& tensor : c.tensors("tensors"))
    expanded.push_back(tensor.sizes() == sizes ? tensor : expand(tensor, sizes));
  c.result(Value(std::move(expanded)));
}

// ATen/native/TensorShape.cpp, meshgrid: tensor i varies along dimension i ("xy": the first two change
// places).
void meshgrid(Call& c, bool swapped) {
  Value::Tensors tensors = c.tensors("tensors"), grids;
  swapped = swapped && tensors.size() >= 2;
  if (swapped) std::swap(tensors[0], tensors[1]);
  Sizes sizes;
  for (const Tensor& tensor : tensors) sizes.push_back(tensor.numel());
  for (size_t i = 0; i < tensors.size(); ++i) {
    Sizes along(sizes.size(), 1);
    along[i] = -1;
    grids.push_back(expand(view(tensors[i], along), sizes));
  }
  if (swapped) std::swap(grids[0], grids[1]);
  c.result(Value(std::move(grids)));
}

void meshgrid_indexing_body(Call& c) {
  const std::string& indexing = c["indexing"].string();
  if (indexing != "ij" && indexing != "xy")
    c.error("indexing must be \"ij\" or \"xy\", got \"" + indexing + "\"");
  meshgrid(c, indexing == "xy");
}

template <int dims>
Tensor at_least(const Tensor& self) {
  if (self.dim() >= dims) return self;
  if (self.dim() == 0) return reshape(self, Sizes(size_t{dims}, int64_t{1}));
  if (dims == 2) return unsqueeze(self, 0);
  return self.dim() == 1 ? unsqueeze(unsqueeze(self, 0), -1) : unsqueeze(self, -1);
}

template <int dims>
void at_least_body(Call& c) {
  c.result(at_least<dims>(c.tensor("self")));
}

template <int dims>
void all_at_least_body(Call& c) {
  Value::Tensors out;
  for (const Tensor& tensor : c.tensors("tensors")) out.push_back(at_least<dims>(tensor));
  c.result(Value(std::move(out)));
}

// --- Order of dimensions

void matrix_transpose_body(Call& c) {
  if (c.tensor("self").dim() < 2) c.error("expects at least 2 dimensions, got " + describe(c.tensor("self")));
  c.result(transpose(c.tensor("self"), -2, -1));
}

void numpy_t_body(Call& c) {
  Sizes dims;
  for (int64_t d = c.tensor("self").dim() - 1; d >= 0; --d) dims.push_back(d);
  c.result(permute(c.tensor("self"), dims));
}

void swap_axes_body(Call& c) {
  c.result(transpose(c.tensor("self"), c.integer("axis0"), c.integer("axis1")));
}
void swap_dims_body(Call& c) { c.result(transpose(c.tensor("self"), c.integer("dim0"), c.integer("dim1"))); }

void move_dims_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes &source = c.ints("source"), &destination = c.ints("destination");
  if (source.size() != destination.size())
    c.error(fmt::format("source has {} dimensions, destination {}", source.size(), destination.size()));
  if (self.dim() == 0) return c.result(call<"alias">(c.session, self));
  const auto count = size_t(self.dim());
  Sizes order(count, -1);
  std::vector<bool> taken(count);
  for (size_t i = 0; i < source.size(); ++i) {
    const auto from = size_t(wrap_dim(source[i], self.dim())),
               to = size_t(wrap_dim(destination[i], self.dim()));
    order[to] = int64_t(from);
    taken[from] = true;
  }
  size_t next = 0;
  for (int64_t& dim : order) {
    if (dim >= 0) continue;
    while (taken[next]) ++next;
    dim = int64_t(next++);
  }
  c.result(permute(self, order));
}

void move_dim_body(Call& c) {
  c.result(call<"movedim.intlist">(c.session, c.tensor("self"), Sizes{c.integer("source")},
                                   Sizes{c.integer("destination")}));
}

// --- Parts

void narrow_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t size = self.size(dim_of(c)), length = c.integer("length");
  int64_t start = c.integer("start");
  if (start < 0) start += size;
  if (length < 0 || start < 0 || start + length > size)
    c.error(fmt::format("start {} and length {} leave dimension {} of {}", start, length, dim_of(c),
                        describe(self)));
  c.result(call<"slice.Tensor">(c.session, self, dim_of(c), start, start + length, 1));
}

// Where it starts is data: the first place stands for all.
void narrow_somewhere_body(Call& c) {
  c.result(call<"narrow">(c.session, c["self"], c["dim"], 0, c["length"]));
}

template <FixedString split>
void chunk_into(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t size = self.size(dim_of(c)), chunks = c.integer("chunks");
  const int64_t piece = (size + chunks - 1) / chunks;
  if (piece == 0)
    return c.result(
        call_all<"split_with_sizes">(c.session, self, Sizes(size_t(chunks), 0), dim_of(c)).value());
  c.result(call_all<split>(c.session, self, piece, dim_of(c)).value());
}

Value slices(Call& c, const Tensor& self, int64_t dim, const Sizes& bounds) {
  Value::Tensors parts;
  for (size_t i = 0; i + 1 < bounds.size(); ++i)
    parts.push_back(call<"slice.Tensor">(c.session, self, dim, bounds[i], bounds[i + 1], 1));
  return Value(std::move(parts));
}

void tensor_split_sections_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t dim = dim_of(c), count = c.integer("sections"), size = self.size(dim);
  Sizes bounds{0};
  for (int64_t i = 0; i < count; ++i) bounds.push_back(bounds.back() + size / count + (i < size % count));
  c.result(slices(c, self, dim, bounds));
}

void tensor_split_indices_body(Call& c) {
  const Tensor& self = c.tensor("self");
  Sizes bounds{0};
  bounds.append(c.ints("indices").begin(), c.ints("indices").end());
  bounds.push_back(self.size(dim_of(c)));
  c.result(slices(c, self, dim_of(c), bounds));
}

// hsplit, vsplit, dsplit: tensor_split along a fixed dimension (hsplit of a vector: along its only one).
template <int dim, FixedString with, FixedString how>
void split_along(Call& c) {
  static const uint32_t argument = name_hash(how.view());
  const Tensor& self = c.tensor("self");
  const int64_t along = dim == 1 && self.dim() == 1 ? 0 : dim;
  const Value& value = c.arguments[size_t(c.op.schema.find(argument))];
  c.result(call_all<with>(c.session, self, value, along).value());
}

// --- Complex numbers

template <int part>
void part_body(Call& c) {
  const Tensor& self = c.tensor("self");
  if (!is_complex(self.dtype())) {
    if (part == 1) c.error("expects a complex tensor, got " + describe(self));
    return c.result(self);
  }
  // native/UnaryOps.cpp: of a conjugate the parts of what it is the conjugate of, marked as negated for the imaginary one.
  const bool conjugated = (self->marks & kConjugated) != 0;
  Tensor pairs = call<"view_as_real">(c.session, conjugated ? call<"_conj">(c.session, self) : self);
  if (conjugated && part == 1) pairs = call<"_neg_view">(c.session, pairs);
  c.result(call<"select.int">(c.session, pairs, pairs.dim() - 1, part));
}

template <uint8_t mark>
void marked_geometry(Call& c) {
  alias_geometry(c);
  set_marks(c.session, c.result_tensor(), c.result_tensor()->marks ^ mark);
}

template <uint8_t mark>
void resolve_body(Call& c) {
  const Tensor& self = c.tensor("self");
  c.result(self->marks & mark ? call<"clone">(c.session, self) : self);
}

void self_body(Call& c) { c.result(c.tensor("self")); }
void conj_body(Call& c) {
  const Tensor& self = c.tensor("self");
  c.result(is_complex(self.dtype()) ? call<"_conj">(c.session, self) : self);
}

void adjoint_body(Call& c) {
  const Tensor transposed = transpose(c.tensor("self"), -2, -1);
  c.result(is_complex(transposed.dtype()) ? call<"_conj">(c.session, transposed) : transposed);
}

constexpr Op kSizes[] = {
    composite_of("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
                 "a view where that is possible, else a copy", reshape_body, {"f32[2,6] (3 4)"}),
    composite_of("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
                 "some dimensions as one", flatten_body, {"f32[2,3,4] 1 -1"}),
    composite_of("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
                 "a dimension as several", unflatten_body, {"f32[2,6] 1 (3 -1)"}, {.takes = "self.dim > 0"}),
    composite_of("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
                 "itself, or a copy in that format", contiguous_body, {"f32[2,3]/1,2"}),
    composite_of("ravel(Tensor(a) self) -> Tensor(a)", "one dimension, a view where that is possible",
                 ravel_body, {"f32[2,3]"}),
    composite_of("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", "expand",
                 [](Call& c) { c.result(expand(c.tensor("self"), c.ints("size"))); }, {"f32[3] (2 3)"}),
    composite_of("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", "expand to another tensor's sizes",
                 expand_as_body, {"f32[3] f32[2,3]"}),
    composite_of("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", "view under another tensor's sizes",
                 [](Call& c) { c.result(view(c.tensor("self"), c.tensor("other").sizes())); },
                 {"f32[6] f32[2,3]"}),
    composite_of("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", "reshape to another tensor's sizes",
                 [](Call& c) { c.result(reshape(c.tensor("self"), c.tensor("other").sizes())); },
                 {"f32[6] f32[2,3]"}),
    composite_of("broadcast_tensors(Tensor[] tensors) -> Tensor[]", "all expanded to common sizes",
                 broadcast_tensors_body, {"(f32[3] f32[2,1])"}),
    composite_of("meshgrid(Tensor[] tensors) -> Tensor[]", "coordinates of a grid",
                 [](Call& c) { meshgrid(c, false); }, {"(f32[2] f32[3])"}),
    composite_of("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", "coordinates of a grid",
                 meshgrid_indexing_body, {"(f32[2] f32[3]) \"ij\"", "(f32[2] f32[3]) \"xy\""}),
    composite_of("atleast_1d(Tensor self) -> Tensor", "at least 1 dimension", at_least_body<1>, {"f32[]"}),
    composite_of("atleast_2d(Tensor self) -> Tensor", "at least 2 dimensions", at_least_body<2>, {"f32[3]"}),
    composite_of("atleast_3d(Tensor self) -> Tensor", "at least 3 dimensions", at_least_body<3>, {"f32[3]"}),
    composite_of("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", "at least 1 dimension",
                 all_at_least_body<1>, {"(f32[])"}),
    composite_of("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", "at least 2 dimensions",
                 all_at_least_body<2>, {"(f32[3])"}),
    composite_of("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", "at least 3 dimensions",
                 all_at_least_body<3>, {"(f32[3])"})};

constexpr Op kOrders[] = {
    composite_of("mT(Tensor(a) self) -> Tensor(a)", "matrices transposed", matrix_transpose_body,
                 {"f32[2,3,4]"}),
    composite_of("mH(Tensor(a) self) -> Tensor(a)", "matrices transposed and conjugated", adjoint_body,
                 {"f32[2,3,4]"}),
    composite_of("matrix_H(Tensor(a) self) -> Tensor(a)", "the matrix transposed and conjugated",
                 adjoint_body, {"f32[3,4]"}),
    composite_of("adjoint(Tensor(a) self) -> Tensor(a)", "matrices transposed and conjugated", adjoint_body,
                 {"f32[2,3,4]"}),
    composite_of("numpy_T(Tensor(a) self) -> Tensor(a)", "dimensions in reverse", numpy_t_body,
                 {"f32[2,3,4]"}),
    composite_of("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", "two dimensions swapped",
                 swap_axes_body, {"f32[2,3,4] 0 2"}),
    composite_of("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", "two dimensions swapped",
                 swap_dims_body, {"f32[2,3,4] 0 2"}),
    composite_of("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", "a dimension moved",
                 move_dim_body, {"f32[2,3,4] 0 2"}),
    composite_of("moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
                 "a dimension moved", move_dim_body, {"f32[2,3,4] 0 2"}),
    composite_of("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
                 "dimensions moved", move_dims_body, {"f32[2,3,4] (0 1) (1 2)"}),
    composite_of("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
                 "dimensions moved", move_dims_body, {"f32[2,3,4] (0 1) (1 2)"})};

constexpr Facts kChunks = {.takes = "self.dim > 0, chunks > 0, results == chunks"};
constexpr Op kPartComposites[] = {
    composite_of("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
                 "a slice by start and length", narrow_body, {"f32[8,3] 0 1 4"}),
    composite_of("narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
                 "a slice by start and length", narrow_somewhere_body, {"f32[8,3] 0 i64[] 4"},
                 Facts{.cudagraph_unsafe = true, .reads_data = true}),
    composite_of("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", "that many pieces",
                 chunk_into<"split.Tensor">, {"f32[7,2] 3"}, kChunks),
    composite_of("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", "that many pieces",
                 chunk_into<"unsafe_split.Tensor">, {"f32[7,2] 3"}, kChunks),
    composite_of("tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
                 "that many pieces, as equal as possible", tensor_split_sections_body, {"f32[7,2] 3"},
                 {.takes = "self.dim > 0, sections > 0, results == sections"}),
    composite_of("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
                 "pieces between indices", tensor_split_indices_body, {"f32[7,2] (1 3)"}),
    composite_of("hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", "pieces side by side",
                 split_along<1, "tensor_split.sections", "sections">, {"f32[2,6] 3"}),
    composite_of("hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", "pieces side by side",
                 split_along<1, "tensor_split.indices", "indices">, {"f32[2,6] (1 3)"}),
    composite_of("vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", "pieces one above the other",
                 split_along<0, "tensor_split.sections", "sections">, {"f32[6,2] 3"}),
    composite_of("vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
                 "pieces one above the other", split_along<0, "tensor_split.indices", "indices">,
                 {"f32[6,2] (1 3)"}),
    composite_of("dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
                 "pieces one behind the other", split_along<2, "tensor_split.sections", "sections">,
                 {"f32[2,2,6] 3"}),
    composite_of("dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
                 "pieces one behind the other", split_along<2, "tensor_split.indices", "indices">,
                 {"f32[2,2,6] (1 3)"}),
    composite_of("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
                 "diagonals of matrices",
                 [](Call& c) {
                   c.result(call<"diagonal">(c.session, c.tensor("A"), c["offset"], c["dim1"], c["dim2"]));
                 },
                 {"f32[2,3,3]"})};

constexpr Op kComplex[] = {
    composite_of("real(Tensor(a) self) -> Tensor(a)", "the real part", part_body<0>, {"f32[3]", "c64[3]"}),
    composite_of("imag(Tensor(a) self) -> Tensor(a)", "the imaginary part", part_body<1>, {"c64[3]"}),
    composite_of("conj(Tensor(a) self) -> Tensor(a)", "the conjugate", conj_body, {"f32[3]"}),
    composite_of("resolve_conj(Tensor(a) self) -> Tensor(a)",
                 "itself, or a copy if it is marked as a conjugate", resolve_body<kConjugated>, {"f32[3]"}),
    composite_of("resolve_neg(Tensor(a) self) -> Tensor(a)", "itself, or a copy if it is marked as negated",
                 resolve_body<kNegated>, {"f32[3]"}),
    composite_of("lift_fresh(Tensor(a) self) -> Tensor(a)", "itself: a tensor that was just made", self_body,
                 {"f32[3]"}),
    view_operator(
        "_conj(Tensor(a) self) -> Tensor(a)", "the conjugate, as a view", marked_geometry<kConjugated>,
        [](Backward& b) { return call<"conj">(b.session, b.grad()); }, {"c64[3]"}, "ConjBackward0"),
    view_operator(
        "_neg_view(Tensor(a) self) -> Tensor(a)", "−self, as a view", marked_geometry<kNegated>,
        [](Backward& b) { return neg(b.grad()); }, {"f32[3]"}, "NegViewBackward0")};

}  // namespace

Tables view_composite_operators() {
  static constexpr Records tables[] = {kSizes, kOrders, kPartComposites, kComplex};
  return tables;
}

}  // namespace metaprof
