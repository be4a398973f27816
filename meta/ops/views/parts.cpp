// Views of parts of a tensor, the operators that put a part's gradient into zeros of the whole, and those
// that write a part into a copy.

#include <fmt/format.h>

#include <algorithm>

#include "meta/autograd/engine/op_node.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/views/family.h"
#include "meta/ops/views/takes.h"
#include "meta/ops/views/views.h"

namespace metaprof {
namespace {

void need_dimensions(const Call& c) {
  if (c.tensor("self").dim() == 0)
    c.error("needs a tensor of at least one dimension, got " + describe(c.tensor("self")));
}

}  // namespace

void slice_geometry(Call& c) {
  need_dimensions(c);
  const Tensor& self = c.tensor("self");
  const auto dim = size_t(dim_of(c));
  const int64_t size = self.size(int64_t(dim)), step = c.integer("step");
  if (step <= 0) c.error(fmt::format("the step must be positive, got {}", step));
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  const int64_t begin = c.given("start") ? clamp(c.integer("start")) : 0;
  const int64_t end = std::max(begin, c.given("end") ? clamp(c.integer("end")) : size);
  Sizes sizes = self.sizes(), strides = self.strides();
  const int64_t offset = self->offset + begin * strides[dim];
  sizes[dim] = (end - begin + step - 1) / step;
  strides[dim] = multiply(strides[dim], step);
  c.view(self, sizes, strides, offset);
}

void select_geometry(Call& c) {
  need_dimensions(c);
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

void diagonal_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto d1 = size_t(dim_of(c, "dim1")), d2 = size_t(dim_of(c, "dim2"));
  if (d1 == d2) c.error("the two dimensions must differ");
  const int64_t shift = c.integer("offset");
  Sizes sizes = self.sizes(), strides = self.strides();
  const int64_t length =
      shift >= 0 ? std::min(sizes[d1], sizes[d2] - shift) : std::min(sizes[d1] + shift, sizes[d2]);
  int64_t offset = self->offset;
  if (length > 0) offset += shift >= 0 ? shift * strides[d2] : -shift * strides[d1];
  const int64_t stride = strides[d1] + strides[d2];
  for (size_t d : {std::max(d1, d2), std::min(d1, d2)}) {
    sizes.erase(d);
    strides.erase(d);
  }
  sizes.push_back(std::max<int64_t>(length, 0));
  strides.push_back(stride);
  c.view(self, sizes, strides, offset);
}

void unfold_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto dim = size_t(dim_of(c, "dimension"));
  const int64_t size = c.integer("size"), step = c.integer("step");
  const int64_t whole = self.dim() == 0 ? 1 : self.sizes()[dim];
  if (size > whole || size < 0 || step <= 0)
    c.error(fmt::format("windows of {} with step {} do not fit {}", size, step, describe(self)));
  Sizes sizes = self.sizes(), strides = self.strides();
  sizes.push_back(size);
  strides.push_back(self.dim() == 0 ? 1 : strides[dim]);
  if (self.dim() > 0) {
    sizes[dim] = (whole - size) / step + 1;
    strides[dim] = multiply(strides[dim], step);
  }
  c.view(self, sizes, strides, self->offset);
}

void as_strided_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t offset = c.given("storage_offset") ? c.integer("storage_offset") : self->offset;
  c.view(self, c.ints("size"), c.ints("stride"), offset);
}

namespace {

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

}  // namespace

void split_geometry(Call& c) {
  const int64_t size = c.tensor("self").size(dim_of(c)), piece = c.integer("split_size");
  if (piece <= 0 && size > 0) c.error(fmt::format("split_size must be positive, got {}", piece));
  Sizes pieces;
  for (int64_t at = 0; at < size; at += piece) pieces.push_back(std::min(piece, size - at));
  if (size == 0) pieces.push_back(0);
  split_into(c, pieces);
}

void split_with_sizes_geometry(Call& c) {
  need_dimensions(c);
  int64_t sum = 0;
  for (int64_t piece : c.ints("split_sizes")) sum += piece;
  if (sum != c.tensor("self").size(dim_of(c)))
    c.error(fmt::format("split_sizes {} do not add up to dimension {} of {}",
                        to_string(SizesView(c.ints("split_sizes"))), dim_of(c), describe(c.tensor("self"))));
  split_into(c, c.ints("split_sizes"));
}

void unbind_geometry(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto dim = size_t(dim_of(c));
  Sizes sizes = self.sizes(), strides = self.strides();
  const int64_t count = sizes[dim], stride = strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  std::vector<Tensor> views;
  for (int64_t i = 0; i < count; ++i)
    views.push_back(make_view(self, sizes, strides, self->offset + i * stride));
  c.view_list(std::move(views));
}

Gradients slice_gradient(Backward& b) {
  return {call<"slice_backward">(b.session, b.grad(), b.sizes("self"), b["dim"],
                                 b.given("start") ? b["start"] : Value(0),
                                 b.given("end") ? b["end"] : Value(INT64_MAX), b["step"])};
}

Gradients select_gradient(Backward& b) {
  return {call<"select_backward">(b.session, b.grad(), b.sizes("self"), b["dim"], b["index"])};
}

Gradients diagonal_gradient(Backward& b) {
  return {Tensor(
      call<"diagonal_backward">(b.session, b.grad(), b.sizes("self"), b["offset"], b["dim1"], b["dim2"]))};
}

Gradients unfold_gradient(Backward& b) {
  return {Tensor(
      call<"unfold_backward">(b.session, b.grad(), b.sizes("self"), b["dimension"], b["size"], b["step"]))};
}

// Missing pieces become zeros, then everything is joined (recorded: engine/split_part_unused).
Gradients split_gradient(Backward& b) {
  const Sizes& whole = b.sizes("self");
  const int64_t dim = wrap_dim(b.integer("dim"), int64_t(whole.size()));
  std::vector<Tensor> pieces;
  for (size_t i = 0; i < b.node.outputs.size(); ++i) {
    if (b.incoming[i].defined()) {
      pieces.push_back(b.incoming[i]);
    } else {
      pieces.push_back(call<"zeros">(b.session, b.node.outputs[i]->sizes, b.dtype("self"), Value(),
                                     b.shape("self")->device));
    }
  }
  return {call<"cat">(b.session, std::move(pieces), dim)};
}

// A missing piece is one zero, repeated by strides of 0 (recorded: engine/unbind_some).
Gradients unbind_gradient(Backward& b) {
  const Tensor* known = nullptr;
  for (const Tensor& gradient : b.incoming)
    if (gradient.defined() && !known) known = &gradient;
  std::vector<Tensor> pieces;
  for (const Tensor& gradient : b.incoming) {
    if (gradient.defined()) {
      pieces.push_back(gradient);
      continue;
    }
    const Tensor zero = call<"zeros">(b.session, Sizes(), known->dtype(), Value(), known->device());
    pieces.push_back(expand(zero, known->sizes()));
  }
  return {call<"stack">(b.session, std::move(pieces), b["dim"])};
}

namespace {

// Sizes and strides as the gradient of a storage sees them: no dimensions of size 1, none repeated.
struct Reach {
  Sizes sizes, strides;
  bool empty = false;

  // Some element of the storage may be seen twice (FunctionsManual.cpp, _maybe_overlapping_memory).
  bool may_overlap() const {
    std::vector<size_t> order(sizes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
    int64_t largest = 0;
    for (size_t d : order) {
      if (strides[d] <= largest) return true;
      largest += strides[d] * (sizes[d] - 1);
    }
    return false;
  }
};

Reach reach_of(SizesView sizes, SizesView strides, bool keep_repeated) {
  Reach reach;
  for (size_t d = 0; d < sizes.size(); ++d) {
    reach.empty |= sizes[d] == 0;
    if (sizes[d] == 1 || (!keep_repeated && strides[d] == 0)) continue;
    reach.sizes.push_back(sizes[d]);
    reach.strides.push_back(strides[d]);
  }
  return reach;
}

// The gradient without the dimensions that `reach_of` leaves out: squeezed where the size is 1, summed where
// an element is repeated.
Tensor without_repetition(Session& session, Tensor gradient, SizesView sizes, SizesView strides) {
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) {
      gradient = call<"squeeze.dim">(session, gradient, int64_t(d));
    } else if (strides[d] == 0) {
      gradient = sum(gradient, Sizes{int64_t(d)}, false);
    }
  }
  return gradient;
}

}  // namespace

// FunctionsManual.cpp, as_strided_backward: zeros for the part of the storage that input and result see, the
// gradient written (or, where the result sees elements twice, added) into it, and the input's view of that.
Gradients as_strided_gradient(Backward& b) {
  Session& s = b.session;
  const TensorImpl& input = *b.shape("self");
  const Sizes &sizes = b.ints("size"), &strides = b.ints("stride");
  const int64_t result_offset = b.given("storage_offset") ? b.integer("storage_offset") : input.offset;
  const Reach result = reach_of(sizes, strides, false), source = reach_of(input.sizes, input.strides, true);
  if (result.empty || source.empty)
    return {call<"zeros">(s, input.sizes, b.grad().dtype(), Value(), b.grad().device())};
  const Tensor gradient = without_repetition(s, b.grad(), sizes, strides);
  const int64_t shared = std::min(input.offset, result_offset);
  const int64_t input_at = input.offset - shared, result_at = result_offset - shared;
  const int64_t count = std::max(input_at + span_of(source.sizes, source.strides),
                                 result_at + span_of(result.sizes, result.strides));
  const Tensor storage = call<"new_zeros">(s, gradient, Sizes{count});
  Tensor indices;
  if (result.may_overlap() || source.may_overlap())
    indices = call<"arange.start">(s, 0, count, DType::i64, Value(), gradient.device());
  if (result.may_overlap()) {
    // Arguments are evaluated from right to left.
    const Tensor values = reshape(gradient, Sizes{-1});
    const Tensor places = reshape(as_strided(indices, result.sizes, result.strides, result_at), Sizes{-1});
    call<"index_add_">(s, storage, 0, places, values);
  } else {
    copy_(as_strided(storage, result.sizes, result.strides, result_at), gradient);
  }
  if (source.may_overlap()) {
    const Tensor times = zeros_like(storage);
    const Tensor places = reshape(as_strided(indices, source.sizes, source.strides, input_at), Sizes{-1});
    const Tensor one = call<"ones">(s, Sizes{1}, gradient.dtype(), Value(), gradient.device());
    call<"index_add_">(s, times, 0, places, call<"expand_as">(s, one, places));
    call<"div_.Tensor">(s, storage, times);
  }
  return {as_strided(storage, input.sizes, input.strides, input_at)};
}

namespace {

// --- Zeros of the whole input with the gradient in the part.

void whole_input_meta(Call& c) { c.output(c.ints("input_sizes"), c.tensor("grad_output").dtype()); }

void unfold_backward_meta(Call& c) { c.output(c.ints("input_sizes"), c.tensor("grad_in").dtype()); }

// Windows that overlap are added up with the help of a row of indices, one for each place that a window
// covers (native/UnfoldBackward.h).
void unfold_backward_cuda(Call& c) {
  c.allocate_all();
  const int64_t step = c.integer("step"), size = c.integer("size");
  const Sizes& sizes = c.ints("input_sizes");
  if (step >= size || sizes.empty()) return;
  const auto dim = size_t(wrap_dim(c.integer("dim"), int64_t(sizes.size())));
  const Tensor& windows = c.tensor("grad_in");
  if (windows.dim() != int64_t(sizes.size()) + 1)
    c.error(fmt::format("windows of {} have one dimension more, got {}", to_string(SizesView(sizes)),
                        describe(windows)));
  const int64_t covered = multiply(windows.sizes()[dim] - 1, step) + size;
  const Tensor indices = c.temporary(Sizes{std::min(sizes[dim], covered)}, DType::i64);
}

constexpr Op part_gradient(std::string_view schema, std::string_view summary, Formula backward,
                           const Examples& examples) {
  return {.schema = schema,
          .summary = summary,
          .meta = whole_input_meta,
          .derivatives = {{{"grad_output"}, {}, backward}},
          .flops = free_of_flops,
          .examples = examples};
}

constexpr Op kPartGradients[] = {
    part_gradient("slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt "
                  "end, SymInt step) -> Tensor",
                  "zeros with the gradient in the slice",
                  [](Backward& b) -> Gradients {
                    return {
                        call<"slice.Tensor">(b.session, b.grad(), b["dim"], b["start"], b["end"], b["step"])};
                  },
                  {"f32[3,3] (8 3) 0 1 7 2"}),
    part_gradient(
        "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
        "zeros with the gradient at the index",
        [](Backward& b) { return call<"select.int">(b.session, b.grad(), b["dim"], b["index"]); },
        {"f32[3] (2 3) 0 1"}),
    part_gradient(
        "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> "
        "Tensor",
        "zeros with the gradient on the diagonal",
        [](Backward& b) { return call<"diagonal">(b.session, b.grad(), b["offset"], b["dim1"], b["dim2"]); },
        {"f32[3] (3 3) 0 0 1"}),
    {.schema = "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
     .summary = "zeros with the gradient of the windows added in",
     .meta = unfold_backward_meta,
     .host_code = {{DeviceType::cuda, unfold_backward_cuda}},
     .derivatives = {{{"grad_in"},
                      {},
                      [](Backward& b) {
                        return call<"unfold">(b.session, b.grad(), b["dim"], b["size"], b["step"]);
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[3,2] (4) 0 2 1"}}};

// --- A part written into a copy.

// The copy keeps strides and gaps of what it copies (at::clone_preserve_strides).
void copy_of_self_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(self.sizes(), self.strides(), self.dtype());
}

constexpr Op scatter_operator(std::string_view schema, std::string_view summary, Derivatives derivatives,
                              const Examples& examples) {
  return {.schema = schema,
          .summary = summary,
          .meta = copy_of_self_meta,
          .derivatives = derivatives,
          .flops = free_of_flops,
          .examples = examples};
}

Tensor no_part(Backward& b) {
  const TensorImpl& part = *b.shape("src");
  return call<"zeros">(b.session, part.sizes, part.dtype, Value(), part.device);
}

Tensor strided_part(Backward& b, const Tensor& of) {
  return call<"as_strided">(b.session, of, b["size"], b["stride"], b["storage_offset"]);
}
// FunctionsManual.cpp, as_strided_scatter_backward: self gets the part of the gradient that is src's.
Gradients strided_scatter_gradient(Backward& b) {
  const Tensor grad = contiguous(b.grad()), part = strided_part(b, grad);
  const Tensor out = call<"new_zeros">(b.session, grad, b.sizes("self"));
  copy_(strided_part(b, out), part);
  return {out};
}

constexpr Op kScatters[] = {
    scatter_operator("slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? "
                     "end=None, SymInt step=1) -> Tensor",
                     "self with src in place of the slice",
                     {{{"self"},
                       {},
                       [](Backward& b) {
                         return call<"slice_scatter">(b.session, b.grad(), no_part(b), b["dim"], b["start"],
                                                      b["end"], b["step"]);
                       }},
                      {{"src"},
                       {},
                       [](Backward& b) -> Gradients {
                         return {call<"slice.Tensor">(b.session, b.grad(), b["dim"], b["start"], b["end"],
                                                      b["step"])};
                       }}},
                     {"f32[8,3] f32[3,3] 0 1 7 2"}),
    scatter_operator(
        "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
        "self with src in place of the index",
        {{{"self"},
          {},
          [](Backward& b) {
            return call<"select_scatter">(b.session, b.grad(), no_part(b), b["dim"], b["index"]);
          }},
         {{"src"},
          {},
          [](Backward& b) { return call<"select.int">(b.session, b.grad(), b["dim"], b["index"]); }}},
        {"f32[2,3] f32[3] 0 1"}),
    scatter_operator(
        "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
        "self with src in place of the diagonal",
        {{{"self"},
          {},
          [](Backward& b) {
            return call<"diagonal_scatter">(b.session, b.grad(), no_part(b), b["offset"], b["dim1"],
                                            b["dim2"]);
          }},
         {{"src"},
          {},
          [](Backward& b) {
            return call<"diagonal">(b.session, b.grad(), b["offset"], b["dim1"], b["dim2"]);
          }}},
        {"f32[3,3] f32[3]"}),
    scatter_operator(
        "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
        "storage_offset=None) -> Tensor",
        "self with src in place of any view of its storage",
        {{{"self"}, {}, strided_scatter_gradient},
         {{"src"}, {}, [](Backward& b) -> Gradients { return {strided_part(b, contiguous(b.grad()))}; }}},
        {"f32[3,3] f32[2,2] (2 2) (1 2) 1"})};

constexpr Op kParts[] = {
    view_operator("slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
                  "step=1) -> Tensor(a)",
                  "self[start:end:step]", slice_geometry, slice_gradient,
                  {"f32[8,3] 0 1 7 2", "f32[8,3] 1 -2"}),
    view_operator("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
                  "self[index] along a dimension", select_geometry, select_gradient,
                  {"f32[2,3] 0 1", "f32[2,3] 1 -1"}),
    view_operator("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", "a diagonal",
                  diagonal_geometry, diagonal_gradient, {"f32[3,4]", "f32[3,4] -1", "f32[2,3,4] 1 1 2"}),
    view_operator("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
                  "windows along a dimension", unfold_geometry, unfold_gradient,
                  {"f32[5] 0 2 1", "f32[2,6] 1 2 3"}),
    view_operator("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) "
                  "-> Tensor(a)",
                  "any view of the storage", as_strided_geometry, as_strided_gradient,
                  {"f32[2,6] (2 3) (6 2) 1"}),
    taking(
        kSplitTakes,
        view_operator("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
                      "pieces of one size", split_geometry, split_gradient, {"f32[6,2] 2", "f32[2,7] 3 1"})),
    view_operator("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
                  "pieces of these sizes", split_with_sizes_geometry, split_gradient, {"f32[6,2] (1 5)"}),
    taking(kUnbindTakes, view_operator("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
                                       "the slices along a dimension", unbind_geometry, unbind_gradient,
                                       {"f32[2,3]", "f32[2,3] 1"}))};

// Views that the framework takes for tensors of their own: writes to one leave the others' versions alone.
template <void (*geometry)(Call&)>
void unsafe(Call& c) {
  geometry(c);
  Value::Tensors parts = c.results[0].tensors();
  for (Tensor& part : parts) {
    part->base.reset();
    part->own_version = make<VersionCounter>();
  }
  c.results[0] = Value(std::move(parts));
}

constexpr Op kUnsafeSplits[] = {
    {.schema = "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
     .summary = "pieces of one size",
     .meta = unsafe<split_geometry>,
     .derivatives = {{{"self"}, {}, split_gradient}},
     .flops = free_of_flops,
     .examples = {"f32[6,2] 2"},
     .facts = {.takes = kSplitTakes}},
    {.schema = "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
     .summary = "pieces of these sizes",
     .meta = unsafe<split_with_sizes_geometry>,
     .derivatives = {{{"self"}, {}, split_gradient}},
     .flops = free_of_flops,
     .examples = {"f32[6,2] (1 5)"}}};

}  // namespace

Tables view_part_operators() {
  static constexpr Records tables[] = {kParts, kUnsafeSplits, kPartGradients, kScatters};
  return tables;
}

}  // namespace metaprof
