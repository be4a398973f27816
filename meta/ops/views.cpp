// Views: results that look into an argument's storage.

#include <fmt/format.h>

#include "meta/autograd/backward.h"
#include "meta/autograd/engine.h"
#include "meta/ops/all.h"
#include "meta/ops/functions.h"
#include "meta/ops/iterator.h"

namespace metaprof {
namespace {

constexpr Facts kView = {.view = true};

Facts view_node(std::string_view node) {
  Facts facts = kView;
  facts.node = node;
  return facts;
}

int64_t dim_of(const Call& c, Name name = "dim") { return wrap_dim(c.integer(name), c.tensor("self").dim()); }

void view_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = infer_size(c.ints("size"), self.numel());
  Sizes strides;
  if (!view_strides(self.sizes(), self.strides(), sizes, strides))
    c.error(fmt::format("sizes {} with strides {} cannot be viewed as {} without a copy",
                        to_string(SizesView(self.sizes())), to_string(SizesView(self.strides())),
                        to_string(SizesView(sizes))));
  c.view(self, sizes, strides, self->offset);
}

// The storage of its argument, but no view of it: in-place writes do not reach back.
void unsafe_view_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = infer_size(c.ints("size"), self.numel());
  Sizes strides;
  if (!view_strides(self.sizes(), self.strides(), sizes, strides)) c.error("the sizes do not fit a view");
  c.result(alias(self, sizes, strides, self->offset));
}

void transpose_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  Sizes sizes = self.sizes(), strides = self.strides();
  if (self.dim() > 0) {
    const auto a = size_t(dim_of(c, "dim0")), b = size_t(dim_of(c, "dim1"));
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  c.view(self, sizes, strides, self->offset);
}

void t_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.dim() > 2) c.error(fmt::format("expects at most 2 dimensions, got {}", describe(self)));
  Sizes sizes = self.sizes(), strides = self.strides();
  if (self.dim() == 2) {
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
  }
  c.view(self, sizes, strides, self->offset);
}

void permute_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes& dims = c.ints("dims");
  if (int64_t(dims.size()) != self.dim())
    c.error(fmt::format("needs {} dims, got {}", self.dim(), dims.size()));
  Sizes sizes, strides;
  for (int64_t dim : dims) {
    const auto d = size_t(wrap_dim(dim, self.dim()));
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  c.view(self, sizes, strides, self->offset);
}

Sizes inverse(const Sizes& dims) {
  Sizes out(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) out[size_t(wrap_dim(dims[i], int64_t(dims.size())))] = int64_t(i);
  return out;
}

void expand_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  Sizes sizes = c.ints("size"), strides(sizes.size(), 0);
  if (int64_t(sizes.size()) < self.dim())
    c.error(fmt::format("{} cannot be expanded to fewer dimensions: {}", describe(self),
                        to_string(SizesView(sizes))));
  const size_t shift = sizes.size() - self.sizes().size();
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    const bool exists = d >= shift;
    const int64_t size = exists ? self.sizes()[d - shift] : 1;
    if (sizes[d] == -1 && exists) sizes[d] = size;
    if (size != sizes[d] && size != 1)
      c.error(fmt::format("{} cannot be expanded to {}", describe(self), to_string(SizesView(sizes))));
    strides[d] = !exists ? (sizes[d] == 1 ? step : 0) : size == sizes[d] ? self.strides()[d - shift] : 0;
    if (exists) step = size == 1 && sizes[d] != 1 ? step : strides[d] * size;
  }
  c.view(self, sizes, strides, self->offset);
}

void unsqueeze_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto dim = size_t(wrap_dim(c.integer("dim"), self.dim() + 1));
  Sizes sizes = self.sizes(), strides = self.strides();
  const int64_t stride = dim >= sizes.size() ? 1 : sizes[dim] * strides[dim];
  sizes.insert(dim, 1);
  strides.insert(dim, stride);
  c.view(self, sizes, strides, self->offset);
}

void squeeze(Call& c, const std::function<bool(size_t)>& drops) {
  const Tensor& self = c.tensor("self");
  Sizes sizes, strides;
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if (self.sizes()[d] == 1 && drops(d)) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  c.view(self, sizes, strides, self->offset);
}

void squeeze_dims_meta(Call& c) {
  const Sizes& dims = c.ints("dim");
  const int64_t count = c.tensor("self").dim();
  squeeze(c, [&](size_t d) {
    return std::any_of(dims.begin(), dims.end(), [&](int64_t x) { return wrap_dim(x, count) == int64_t(d); });
  });
}

void as_strided_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t offset = c.given("storage_offset") ? c.integer("storage_offset") : self->offset;
  c.view(self, c.ints("size"), c.ints("stride"), offset);
}

// Changes the tensor itself: every handle to it sees the new geometry.
void as_strided_in_place_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  TensorImpl& impl = *self;
  impl.sizes = c.ints("size");
  impl.strides = c.ints("stride");
  if (c.given("storage_offset")) impl.offset = c.integer("storage_offset");
  impl.refresh();
  c.result(self);
}

void slice_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto dim = size_t(dim_of(c));
  const int64_t size = self.size(int64_t(dim)), step = c.integer("step");
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  const int64_t begin = c.given("start") ? clamp(c.integer("start")) : 0;
  const int64_t end = std::max(begin, c.given("end") ? clamp(c.integer("end")) : size);
  Sizes sizes = self.sizes(), strides = self.strides();
  const int64_t offset = self->offset + begin * strides[dim];
  sizes[dim] = (end - begin + step - 1) / step;
  strides[dim] *= step;
  c.view(self, sizes, strides, offset);
}

void select_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto dim = size_t(dim_of(c));
  int64_t index = c.integer("index");
  const int64_t size = self.size(int64_t(dim));
  if (index < -size || index >= size)
    c.error(fmt::format("index {} is out of range for {} at dimension {}", index, describe(self), dim));
  if (index < 0) index += size;
  Sizes sizes = self.sizes(), strides = self.strides();
  const int64_t offset = self->offset + index * strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  c.view(self, sizes, strides, offset);
}

// Pieces of these sizes along a dimension.
void split_into(Call& c, SizesView pieces) {
  const Tensor& self = c.tensor("self");
  const auto dim = size_t(dim_of(c));
  std::vector<Tensor> views;
  int64_t at = 0;
  for (int64_t piece : pieces) {
    Sizes sizes = self.sizes();
    sizes[dim] = piece;
    views.push_back(make_view(self, sizes, self.strides(), self->offset + at * self.strides()[dim]));
    at += piece;
  }
  c.view_list(std::move(views));
}

void split_meta(Call& c) {
  const int64_t size = c.tensor("self").size(dim_of(c)), piece = c.integer("split_size");
  if (piece <= 0 && size > 0) c.error(fmt::format("split_size must be positive, got {}", piece));
  Sizes pieces;
  for (int64_t at = 0; at < size; at += piece) pieces.push_back(std::min(piece, size - at));
  if (size == 0) pieces.push_back(0);
  split_into(c, pieces);
}

void split_with_sizes_meta(Call& c) { split_into(c, c.ints("split_sizes")); }

void detach_meta(Call& c) { c.result(alias(c.tensor("self"))); }
void alias_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.view(self, self.sizes(), self.strides(), self->offset);
}

// --- composites

void reshape_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = infer_size(c.ints("shape"), self.numel());
  Sizes strides;
  if (view_strides(self.sizes(), self.strides(), sizes, strides)) return c.result(view(self, sizes));
  c.result(Tensor(call<"_unsafe_view">(c.session, clone(self, MemoryFormat::contiguous), sizes)));
}

void flatten_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto first = size_t(dim_of(c, "start_dim")), last = size_t(dim_of(c, "end_dim"));
  if (self.dim() == 0) return c.result(reshape(self, Sizes{1}));
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

void contiguous_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto format = static_cast<MemoryFormat>(c.integer("memory_format"));
  const bool is =
      format == MemoryFormat::contiguous ? self->contiguous : is_channels_last(self.sizes(), self.strides());
  c.result(is ? self : clone(self, format));
}

void chunk_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t size = self.size(dim_of(c)), chunks = c.integer("chunks");
  const int64_t piece = (size + chunks - 1) / chunks;
  if (piece == 0)
    return c.result(call<"split_with_sizes">(c.session, self, Sizes(size_t(chunks), 0), dim_of(c)).value());
  c.result(call<"split.Tensor">(c.session, self, piece, dim_of(c)).value());
}

// --- derivatives

Gradients reshaped(Backward& b) { return {reshape(b.grad(), b.sizes("self"))}; }

// Zeros of the whole input with the gradient copied into the part (slice_backward, select_backward).
Gradients slice_backward(Backward& b) {
  return {Tensor(call<"slice_backward">(b.session, b.grad(), b.sizes("self"), b["dim"],
                                        b.given("start") ? b["start"] : Value(0),
                                        b.given("end") ? b["end"] : Value(INT64_MAX), b["step"]))};
}
Gradients select_backward(Backward& b) {
  return {Tensor(call<"select_backward">(b.session, b.grad(), b.sizes("self"), b["dim"], b["index"]))};
}

void whole_input_meta(Call& c) { c.output(c.ints("input_sizes"), c.tensor("grad_output").dtype()); }

// Missing pieces become zeros, then everything is joined (recorded: engine/split_part_unused).
Gradients split_backward(Backward& b) {
  const Sizes& whole = b.sizes("self");
  const int64_t dim = wrap_dim(b.integer("dim"), int64_t(whole.size()));
  std::vector<Tensor> pieces;
  for (size_t i = 0; i < b.node.metadata.size(); ++i) {
    if (b.incoming[i].defined()) {
      pieces.push_back(b.incoming[i]);
    } else {
      pieces.push_back(call<"zeros">(b.session, b.node.metadata[i]->sizes, b.dtype("self"), Value(),
                                     b.shape("self")->device));
    }
  }
  return {Tensor(call<"cat">(b.session, std::move(pieces), dim))};
}

}  // namespace

void add_view_operators(std::vector<Op>& ops) {
  ops.push_back({.schema = "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
                 .summary = "the same elements under other sizes",
                 .meta = view_meta,
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, reshaped}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,6] (3 4)", "f32[2,6] (-1)"},
                 .facts = kView});
  ops.push_back({.schema = "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
                 .summary = "view of a tensor that nobody else will see",
                 .meta = unsafe_view_meta,
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, reshaped}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,6] (3 4)"},
                 .facts = {.node = "UnsafeViewBackward0"}});
  ops.push_back({.schema = "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
                 .summary = "two dimensions swapped",
                 .meta = transpose_meta,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {},
                                  [](Backward& b) -> Gradients {
                                    return {transpose(b.grad(), b.integer("dim0"), b.integer("dim1"))};
                                  }}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,3,4] 0 2", "f32[2,3] -1 0"},
                 .facts = kView});
  ops.push_back({.schema = "t(Tensor(a) self) -> Tensor(a)",
                 .summary = "the transposed matrix",
                 .meta = t_meta,
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, [](Backward& b) -> Gradients { return {t(b.grad())}; }}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,3]", "f32[3]"},
                 .facts = kView});
  ops.push_back({.schema = "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
                 .summary = "dimensions in another order",
                 .meta = permute_meta,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {},
                                  [](Backward& b) -> Gradients {
                                    return {permute(b.grad(), inverse(b.ints("dims")))};
                                  }}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,3,4] (2 0 1)"},
                 .facts = kView});
  ops.push_back({.schema = "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
                 .summary = "repeated by strides of 0",
                 .meta = expand_meta,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {},
                                  [](Backward& b) -> Gradients {
                                    return {sum_to(b.session, b.grad(), b.sizes("self"))};
                                  }}},
                 .flops = free_of_flops,
                 .examples = {"f32[3,1] (2 3 4)", "f32[3] (2 -1)"},
                 .facts = kView});
  ops.push_back({.schema = "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
                 .summary = "a dimension of size 1 more",
                 .meta = unsqueeze_meta,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {},
                                  [](Backward& b) -> Gradients {
                                    return {
                                        Tensor(call<"squeeze.dim">(b.session, b.grad(), b.integer("dim")))};
                                  }}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,3] 1", "f32[2,3] -1"},
                 .facts = kView});
  ops.push_back({.schema = "squeeze(Tensor(a) self) -> Tensor(a)",
                 .summary = "without dimensions of size 1",
                 .meta = [](Call& c) { squeeze(c, [](size_t) { return true; }); },
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, reshaped}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,1,3,1]"},
                 .facts = kView});
  ops.push_back(
      {.schema = "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
       .summary = "without this dimension, if its size is 1",
       .meta = [](Call& c) { squeeze(c, [dim = size_t(dim_of(c))](size_t d) { return d == dim; }); },
       .kernels = {},
       .derivatives = {{{"self"}, {}, reshaped}},
       .flops = free_of_flops,
       .examples = {"f32[2,1,3] 1", "f32[2,1,3] 0"},
       .facts = view_node("SqueezeBackward1")});
  ops.push_back({.schema = "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
                 .summary = "without these dimensions, where their size is 1",
                 .meta = squeeze_dims_meta,
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, reshaped}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,1,3,1] (1 3)"},
                 .facts = view_node("SqueezeBackward2")});
  ops.push_back({.schema = "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? "
                           "storage_offset=None) -> Tensor(a)",
                 .summary = "any view of the storage",
                 .meta = as_strided_meta,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {},
                                  [](Backward& b) -> Gradients {
                                    return {Tensor(call<"as_strided_backward">(
                                        b.session, b.grad(), b.sizes("self"), b.shape("self")->strides,
                                        b["size"], b["stride"], b["storage_offset"]))};
                                  }}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,6] (2 3) (6 2) 1"},
                 .facts = kView});
  ops.push_back({.schema = "as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? "
                           "storage_offset=None) -> Tensor(a!)",
                 .summary = "self with another geometry over the same storage",
                 .meta = as_strided_in_place_meta,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {},
                                  [](Backward& b) -> Gradients {
                                    return {Tensor(call<"as_strided_backward">(
                                        b.session, b.grad(), b.sizes("self"), b.shape("self")->strides,
                                        b["size"], b["stride"], b["storage_offset"]))};
                                  }}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,3] (2 3) (3 1)"},
                 .facts = {.node = "AsStridedBackward1"}});
  ops.push_back({.schema = "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, "
                           "SymInt step=1) -> Tensor(a)",
                 .summary = "self[start:end:step]",
                 .meta = slice_meta,
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, slice_backward}},
                 .flops = free_of_flops,
                 .examples = {"f32[8,3] 0 1 7 2", "f32[8,3] 1 -2"},
                 .facts = kView});
  ops.push_back({.schema = "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
                 .summary = "self[index] along a dimension",
                 .meta = select_meta,
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, select_backward}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,3] 0 1", "f32[2,3] 1 -1"},
                 .facts = kView});
  ops.push_back({.schema = "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
                 .summary = "pieces of one size",
                 .meta = split_meta,
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, split_backward}},
                 .flops = free_of_flops,
                 .examples = {"f32[6,2] 2", "f32[2,7] 3 1"},
                 .facts = kView});
  ops.push_back(
      {.schema = "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
       .summary = "pieces of these sizes",
       .meta = split_with_sizes_meta,
       .kernels = {},
       .derivatives = {{{"self"}, {}, split_backward}},
       .flops = free_of_flops,
       .examples = {"f32[6,2] (1 5)"},
       .facts = kView});
  ops.push_back({.schema = "detach(Tensor(a) self) -> Tensor(a)",
                 .summary = "the same tensor without history",
                 .meta = detach_meta,
                 .kernels = {},
                 .derivatives = not_differentiable,
                 .flops = free_of_flops,
                 .examples = {"f32[2]"},
                 .facts = {}});
  ops.push_back({.schema = "alias(Tensor(a) self) -> Tensor(a)",
                 .summary = "the same tensor",
                 .meta = alias_meta,
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, [](Backward& b) -> Gradients { return {b.grad()}; }}},
                 .flops = free_of_flops,
                 .examples = {"f32[2]"},
                 .facts = kView});
  ops.push_back({.schema = "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, "
                           "SymInt end, SymInt step) -> Tensor",
                 .summary = "zeros with the gradient in the slice",
                 .meta = whole_input_meta,
                 .kernels = {},
                 .derivatives = {{{"grad_output"},
                                  {},
                                  [](Backward& b) -> Gradients {
                                    return {Tensor(call<"slice.Tensor">(b.session, b.grad(), b["dim"],
                                                                        b["start"], b["end"], b["step"]))};
                                  }}},
                 .flops = free_of_flops,
                 .examples = {"f32[3,3] (8 3) 0 1 7 2"},
                 .facts = {}});
  ops.push_back(
      {.schema = "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
       .summary = "zeros with the gradient at the index",
       .meta = whole_input_meta,
       .kernels = {},
       .derivatives = {{{"grad_output"},
                        {},
                        [](Backward& b) -> Gradients {
                          return {Tensor(call<"select.int">(b.session, b.grad(), b["dim"], b["index"]))};
                        }}},
       .flops = free_of_flops,
       .examples = {"f32[3] (2 3) 0 1"},
       .facts = {}});
  ops.push_back({.schema = "as_strided_backward(Tensor grad_output, SymInt[] self_sizes, SymInt[] "
                           "self_strides, SymInt[] size, SymInt[] stride, SymInt? storage_offset) -> Tensor",
                 .summary = "zeros of the input's storage with the gradient added in",
                 .meta =
                     [](Call& c) {
                       c.output(c.ints("self_sizes"), c.ints("self_strides"),
                                c.tensor("grad_output").dtype());
                     },
                 .kernels = {},
                 .derivatives = not_differentiable,
                 .flops = free_of_flops,
                 .examples = {"f32[2,3] (2 6) (6 1) (2 3) (6 2) 1"},
                 .facts = {}});
  ops.push_back({.schema = "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
                 .summary = "a view where that is possible, else a copy",
                 .meta = composite(reshape_body),
                 .kernels = {},
                 .derivatives = by_body,
                 .flops = by_body,
                 .examples = {"f32[2,6] (3 4)"},
                 .facts = {}});
  ops.push_back({.schema = "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
                 .summary = "some dimensions as one",
                 .meta = composite(flatten_body),
                 .kernels = {},
                 .derivatives = by_body,
                 .flops = by_body,
                 .examples = {"f32[2,3,4] 1 -1"},
                 .facts = {}});
  ops.push_back(
      {.schema = "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
       .summary = "itself, or a copy in that format",
       .meta = composite(contiguous_body),
       .kernels = {},
       .derivatives = by_body,
       .flops = by_body,
       .examples = {"f32[2,3]/1,2"},
       .facts = {}});
  ops.push_back({.schema = "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
                 .summary = "that many pieces",
                 .meta = composite(chunk_body),
                 .kernels = {},
                 .derivatives = by_body,
                 .flops = by_body,
                 .examples = {"f32[7,2] 3"},
                 .facts = {}});
}

}  // namespace metaprof
