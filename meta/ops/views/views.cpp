// Views of a whole tensor: results that look at all elements of an argument's storage in another way.

#include "meta/ops/views/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "meta/autograd/engine/engine.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/sparse/sparse.h"
#include "meta/ops/views/family.h"

namespace metaprof {

int64_t dim_of(const Call& c, Name name) { return wrap_dim(c.integer(name), c.tensor("self").dim()); }

void view_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = infer_size(c.ints("size"), self.numel());
  Sizes strides;
  if (!view_strides(self.sizes(), self.strides(), sizes, strides))
    c.error(fmt::format("sizes {} with strides {} cannot be viewed as {} without a copy",
                        to_string(SizesView(self.sizes())), to_string(SizesView(self.strides())),
                        to_string(SizesView(sizes))));
  c.view(self, sizes, strides, self->offset);
}

void transpose_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.is_sparse()) return c.result(transposed_sparse(c, c.integer("dim0"), c.integer("dim1")));
  Sizes sizes = self.sizes(), strides = self.strides();
  if (self.dim() > 0) {
    const auto a = size_t(dim_of(c, "dim0")), b = size_t(dim_of(c, "dim1"));
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  c.view(self, sizes, strides, self->offset);
}

void t_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.dim() > 2) c.error(fmt::format("expects at most 2 dimensions, got {}", describe(self)));
  if (self.is_sparse()) return c.result(transposed_sparse(c, 0, self.dim() - 1));
  Sizes sizes = self.sizes(), strides = self.strides();
  if (self.dim() == 2) {
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
  }
  c.view(self, sizes, strides, self->offset);
}

void permute_geometry(Call& c) {
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

void expand_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  Sizes sizes = c.ints("size"), strides(sizes.size(), 0);
  if (int64_t(sizes.size()) < self.dim())
    c.error(fmt::format("{} cannot be expanded to fewer dimensions: {}", describe(self),
                        to_string(SizesView(sizes))));
  // ATen/ExpandUtils.cpp, inferExpandGeometryImpl: from the last dimension on; a new one gets the stride that
  // continues the one behind it, unless it repeats.
  const size_t shift = sizes.size() - self.sizes().size();
  for (size_t d = sizes.size(); d-- > 0;) {
    const bool exists = d >= shift, last = d + 1 == sizes.size();
    const int64_t size = exists ? self.sizes()[d - shift] : 1;
    if (sizes[d] == -1 && exists) sizes[d] = size;
    if (size != sizes[d] && size != 1)
      c.error(fmt::format("{} cannot be expanded to {}", describe(self), to_string(SizesView(sizes))));
    if (size != sizes[d]) {
      strides[d] = 0;
    } else if (exists) {
      strides[d] = self.strides()[d - shift];
    } else {
      strides[d] = last ? 1 : sizes[d + 1] * strides[d + 1];
    }
  }
  c.view(self, sizes, strides, self->offset);
}

void unsqueeze_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto dim = size_t(wrap_dim(c.integer("dim"), self.dim() + 1));
  Sizes sizes = self.sizes(), strides = self.strides();
  const int64_t stride = dim >= sizes.size() ? 1 : sizes[dim] * strides[dim];
  sizes.insert(dim, 1);
  strides.insert(dim, stride);
  c.view(self, sizes, strides, self->offset);
}

namespace {

template <class Drops>
void without_dimensions(Call& c, Drops drops) {
  const Tensor& self = c.tensor("self");
  Sizes sizes, strides;
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if (self.sizes()[d] == 1 && drops(d)) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  c.view(self, sizes, strides, self->offset);
}

bool contains(const Sizes& dims, size_t d, int64_t count) {
  return std::any_of(dims.begin(), dims.end(), [&](int64_t x) { return wrap_dim(x, count) == int64_t(d); });
}

// Dimensions of size 1 that a squeeze took come back; if it took none, the gradient itself is returned
// (torch/csrc/autograd/FunctionsManual.cpp, unsqueeze_to).
template <class Taken>
Gradients unsqueeze_to(Backward& b, Taken taken) {
  const Sizes& sizes = b.sizes("self");
  Tensor gradient = b.grad();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == 1 && taken(d)) gradient = unsqueeze(gradient, int64_t(d));
  return {gradient};
}

}  // namespace

void squeeze_geometry(Call& c) {
  without_dimensions(c, [](size_t) { return true; });
}

void squeeze_dim_geometry(Call& c) {
  without_dimensions(c, [dim = size_t(dim_of(c))](size_t d) { return d == dim; });
}

void squeeze_dims_geometry(Call& c) {
  const int64_t count = c.tensor("self").dim();
  without_dimensions(c, [&, dims = c.ints("dim")](size_t d) { return contains(dims, d, count); });
}

void alias_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.is_sparse()) return c.result(sparse_alias(self));
  c.view(self, self.sizes(), self.strides(), self->offset);
}

namespace {

// The storage of its argument, but no view of it: in-place writes do not reach back.
void unsafe_view_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes sizes = infer_size(c.ints("size"), self.numel());
  Sizes strides;
  if (!view_strides(self.sizes(), self.strides(), sizes, strides)) c.error("the sizes do not fit a view");
  c.result(alias(self, sizes, strides, self->offset));
}

void reshape_alias_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  c.view(self, c.ints("size"), c.ints("stride"), self->offset);
}

void detach_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.result(self.is_sparse() ? sparse_alias(self) : alias(self));
}

// A view of the same bytes under another dtype.
Tensor view_as_dtype(const Tensor& self, DType dtype, SizesView sizes, SizesView strides, int64_t offset) {
  Tensor view = make_view(self, sizes, strides, offset);
  view->dtype = dtype;
  return view;
}

void view_as_real_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  if (!is_complex(self.dtype())) c.error(fmt::format("expects a complex tensor, got {}", describe(self)));
  if (self->marks & kConjugated)
    c.error("doesn't work on unresolved conjugated tensors: use resolve_conj() first");
  Sizes sizes = self.sizes(), strides = self.strides();
  for (int64_t& stride : strides) stride *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  c.result(view_as_dtype(self, real_type(self.dtype()), sizes, strides, self->offset * 2));
}

void view_as_complex_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  if (!is_floating(self.dtype()) || self.dim() == 0 || self.size(-1) != 2)
    c.error(fmt::format("expects real and imaginary parts in a last dimension of 2, got {}", describe(self)));
  Sizes sizes = self.sizes(), strides = self.strides();
  sizes.pop_back();
  strides.pop_back();
  for (int64_t& stride : strides) {
    if (stride % 2 != 0) c.error("the strides of all dimensions but the last must be even");
    stride /= 2;
  }
  c.result(view_as_dtype(self, complex_type(self.dtype()), sizes, strides, self->offset / 2));
}

Gradients view_as_real_backward(Backward& b) {
  return {call<"view_as_complex">(b.session, contiguous(b.grad()))};
}
Gradients view_as_complex_backward(Backward& b) {
  return {call<"view_as_real">(b.session, call<"resolve_conj">(b.session, contiguous(b.grad())))};
}

Sizes inverse(const Sizes& dims) {
  Sizes out(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) out[size_t(wrap_dim(dims[i], int64_t(dims.size())))] = int64_t(i);
  return out;
}

}  // namespace

Gradients view_backward(Backward& b) { return {reshape(b.grad(), b.sizes("self"))}; }
Gradients transpose_backward(Backward& b) {
  return {transpose(b.grad(), b.integer("dim0"), b.integer("dim1"))};
}
Gradients t_backward(Backward& b) { return {t(b.grad())}; }
Gradients permute_backward(Backward& b) { return {permute(b.grad(), inverse(b.ints("dims")))}; }
Gradients expand_backward(Backward& b) { return {sum_to(b.session, b.grad(), b.sizes("self"))}; }
Gradients unsqueeze_backward(Backward& b) {
  return {call<"squeeze.dim">(b.session, b.grad(), b.integer("dim"))};
}
Gradients squeeze_backward(Backward& b) {
  return unsqueeze_to(b, [](size_t) { return true; });
}
Gradients squeeze_dim_backward(Backward& b) {
  const int64_t dim = wrap_dim(b.integer("dim"), int64_t(b.sizes("self").size()));
  return unsqueeze_to(b, [&](size_t d) { return int64_t(d) == dim; });
}
Gradients squeeze_dims_backward(Backward& b) {
  return unsqueeze_to(b,
                      [&](size_t d) { return contains(b.ints("dim"), d, int64_t(b.sizes("self").size())); });
}
Gradients same_gradient(Backward& b) { return {b.grad()}; }

namespace {

constexpr Op kView[] = {
    view_operator("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", "the same elements under other sizes",
                  view_geometry, view_backward, {"f32[2,6] (3 4)", "f32[2,6] (-1)"}),
    {.schema = "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
     .summary = "view of a tensor that nobody else will see",
     .meta = unsafe_view_meta,
     .derivatives = {{{"self"}, {}, view_backward}},
     .flops = free_of_flops,
     .examples = {"f32[2,6] (3 4)"},
     .facts = {.node = "UnsafeViewBackward0"}},
    view_operator("_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
                  "a view whose strides are known", reshape_alias_geometry, view_backward,
                  {"f32[2,6] (3 4) (4 1)"}),
    view_operator("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", "two dimensions swapped",
                  transpose_geometry, transpose_backward, {"f32[2,3,4] 0 2", "f32[2,3] -1 0"}),
    view_operator("t(Tensor(a) self) -> Tensor(a)", "the transposed matrix", t_geometry, t_backward,
                  {"f32[2,3]", "f32[3]"}),
    view_operator("permute(Tensor(a) self, int[] dims) -> Tensor(a)", "dimensions in another order",
                  permute_geometry, permute_backward, {"f32[2,3,4] (2 0 1)"}),
    view_operator("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
                  "repeated by strides of 0", expand_geometry, expand_backward,
                  {"f32[3,1] (2 3 4)", "f32[3] (2 -1)", "f32[] (1 3)"}),
    view_operator("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", "a dimension of size 1 more",
                  unsqueeze_geometry, unsqueeze_backward, {"f32[2,3] 1", "f32[2,3] -1"}),
    view_operator("squeeze(Tensor(a) self) -> Tensor(a)", "without dimensions of size 1", squeeze_geometry,
                  squeeze_backward, {"f32[2,1,3,1]"}),
    view_operator("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
                  "without this dimension, if its size is 1", squeeze_dim_geometry, squeeze_dim_backward,
                  {"f32[2,1,3] 1", "f32[2,1,3] 0"}, "SqueezeBackward1"),
    view_operator("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
                  "without these dimensions, where their size is 1", squeeze_dims_geometry,
                  squeeze_dims_backward, {"f32[2,1,3,1] (1 3)"}, "SqueezeBackward2"),
    view_operator("alias(Tensor(a) self) -> Tensor(a)", "the same tensor", alias_geometry, same_gradient,
                  {"f32[2]"}),
    view_operator("view_as_real(Tensor(a) self) -> Tensor(a)", "real and imaginary parts",
                  view_as_real_geometry, view_as_real_backward, {"c64[3]"}),
    view_operator("view_as_complex(Tensor(a) self) -> Tensor(a)", "pairs as complex numbers",
                  view_as_complex_geometry, view_as_complex_backward, {"f32[3,2]"}),
    {.schema = "detach(Tensor(a) self) -> Tensor(a)",
     .summary = "the same tensor without history",
     .meta = detach_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[2]"},
     .facts = {.reads_marks = kConjugated | kNegated, .cuts_history = true}}};

}  // namespace

Tables view_operators() {
  static constexpr Records tables[] = {kView};
  return tables;
}

}  // namespace metaprof
