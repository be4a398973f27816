// Elements repeated, rolled and turned round.

#include <fmt/format.h>

#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/sizes_by_data.h"
#include "meta/ops/views/family.h"

namespace metaprof {
namespace {

// --- repeat

void repeat_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  Sizes sizes = c.ints("repeats");
  if (int64_t(sizes.size()) < self.dim())
    c.error(fmt::format("needs a number for each dimension of {}; got {}", describe(self),
                        to_string(SizesView(sizes))));
  const size_t added = sizes.size() - self.sizes().size();
  for (size_t d = added; d < sizes.size(); ++d) sizes[d] *= self.sizes()[d - added];
  c.output(sizes, self.dtype());
}

// FunctionsManual.cpp, repeat_backward: dimensions in front are summed one by one, the rest at once after
// splitting each dimension in repetitions and elements.
Gradients repeat_backward(Backward& b) {
  const Sizes &repeats = b.ints("repeats"), &sizes = b.sizes("self");
  Tensor grad = b.grad();
  if (std::find(repeats.begin(), repeats.end(), 0) != repeats.end())
    return {call<"zeros">(b.session, sizes, grad.dtype(), Value(), grad.device())};
  const size_t added = repeats.size() - sizes.size();
  for (size_t i = 0; i < added; ++i) grad = sum(grad, Sizes{0}, false);
  Sizes split, summed;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (repeats[d + added] != 1) {
      summed.push_back(int64_t(split.size()));
      split.push_back(repeats[d + added]);
    }
    split.push_back(sizes[d]);
  }
  if (summed.empty()) return {grad};
  grad = reshape(grad, split);
  return {sum(grad, summed, false)};
}

void tile_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes& dims = c.ints("dims");
  Sizes repeats;
  for (size_t i = dims.size(); i < self.sizes().size(); ++i) repeats.push_back(1);
  repeats.append(dims.begin(), dims.end());
  c.result(call<"repeat">(c.session, self, repeats));
}

// ATen/native/Repeat.cpp: an expanded dimension more, made contiguous and joined with its neighbour.
void repeat_interleave_body(Call& c) {
  const Tensor& self = c.tensor("self");
  Tensor input = self;
  if (!c.given("dim")) input = call<"flatten.using_ints">(c.session, self, 0, -1);
  const int64_t dim = wrap_dim(c.given("dim") ? c.integer("dim") : 0, self.dim());
  input = unsqueeze(input, dim + 1);
  Sizes sizes = input.sizes();
  sizes[size_t(dim) + 1] = c.integer("repeats");
  input = expand(input, sizes);
  const Tensor copy = clone(input, MemoryFormat::contiguous);
  c.result(call<"flatten.using_ints">(c.session, copy, dim, dim + 1));
}

// aten/src/ATen/native/Repeat.h: where each run ends, then the places.
void run_places_meta(Call& c) {
  if (c.tensor("repeats").dim() != 1)
    c.error(fmt::format("expects a vector of numbers, got {}", describe(c.tensor("repeats"))));
  const int64_t size = c.given("output_size") ? c.integer("output_size") : size_by_data(c);
  if (size == 0 && !c.given("output_size"))
    c.error("how many elements there will be is data: give output_size");
  c.output(Sizes{size}, c.tensor("repeats").dtype());
}

void run_places_cuda(Call& c) {
  const Tensor& repeats = c.tensor("repeats");
  if (repeats.numel() == 0) return c.allocate(0);
  const Tensor input = c.contiguous(repeats), ends = call<"cumsum">(c.session, input, 0);
  c.allocate(0);
}

void repeat_each_body(Call& c) {
  Tensor input = c.tensor("self"), repeats = c.tensor("repeats");
  if (!c.given("dim")) input = call<"flatten.using_ints">(c.session, input, 0, -1);
  const int64_t dim = wrap_dim(c.given("dim") ? c.integer("dim") : 0, input.dim());
  if (repeats.numel() == 1) repeats = expand(reshape(repeats, Sizes{1}), Sizes{input.size(dim)});
  const WithSizeByData runs(c.session, size_by_data(c, size_t(dim)));
  const Tensor places = call<"repeat_interleave.Tensor">(c.session, repeats, c["output_size"]);
  c.result(index_select(input, dim, places));
}

// --- roll

void roll_meta(Call& c) { c.output(c.tensor("self").sizes(), c.tensor("self").dtype()); }

// ATen/native/cuda/TensorTransformations.cu, roll_cuda: one dimension after the other, each into a new
// tensor.
void roll_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes& dims = c.ints("dims");
  const size_t passes = std::max<size_t>(dims.size(), 1);
  std::vector<Tensor> rolled;
  const Tensor input = c.contiguous(self);
  for (size_t i = 0; i + 1 < passes; ++i) rolled.push_back(c.temporary(self.sizes(), self.dtype()));
  c.allocate(0);
  while (!rolled.empty()) rolled.pop_back();
}

Gradients roll_backward(Backward& b) {
  Sizes shifts, dims;
  for (size_t i = b.ints("shifts").size(); i-- > 0;) shifts.push_back(-b.ints("shifts")[i]);
  for (size_t i = b.ints("dims").size(); i-- > 0;) dims.push_back(b.ints("dims")[i]);
  return {call<"roll">(b.session, b.grad(), shifts, dims)};
}

// --- flip

void flip_meta(Call& c) { c.output_like(c.tensor("self")); }

void flip_along(Call& c, int64_t dim, int64_t least) {
  if (c.tensor("self").dim() < least)
    c.error(fmt::format("needs {} dimensions, got {}", least, describe(c.tensor("self"))));
  c.result(flip(c.tensor("self"), dim));
}

// Quarter turns: a flip, whose result is then seen with two dimensions swapped.
void rot90_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes& dims = c.ints("dims");
  if (dims.size() != 2) c.error(fmt::format("turns in a plane of two dimensions, got {}", dims.size()));
  const int64_t turns = ((c.integer("k") % 4) + 4) % 4;
  if (turns == 0) {
    c.output(self.sizes(), self.dtype());
    return;
  }
  Tensor& result = c.output_like(self);
  if (turns == 2) return;
  const auto a = size_t(wrap_dim(dims[0], self.dim())), b = size_t(wrap_dim(dims[1], self.dim()));
  Sizes sizes = result.sizes(), strides = result.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  c.results.clear();
  c.output(sizes, strides, self.dtype());
}

constexpr Op kRepeating[] = {
    {.schema = "repeat(Tensor self, SymInt[] repeats) -> Tensor",
     .summary = "self several times along each dimension",
     .meta = repeat_meta,
     .derivatives = {{{"self"}, {}, repeat_backward}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] (2 1 3)", "f32[2] (1)"}},
    composite_of("tile(Tensor self, SymInt[] dims) -> Tensor", "self several times along the last dimensions",
                 tile_body, {"f32[2,3] (2)"}),
    {.schema = "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
     .summary = "each index as often as its number says",
     .meta = run_places_meta,
     .host_code = {{DeviceType::cuda, run_places_cuda}},
     .derivatives = not_differentiable,
     .flops = elementwise_flops<1>,
     .examples = {"i64[4] 2"},
     .facts = {.reads_data = true, .host_reads = true}},
    composite_of("repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? "
                 "output_size=None) -> Tensor",
                 "each slice as often as its number says", repeat_each_body, {"f32[4,2] i64[4] 0 2"},
                 {.reads_data = true}),
    composite_of("repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? "
                 "output_size=None) -> Tensor",
                 "each element several times", repeat_interleave_body, {"f32[2,3] 2 1"}),
    {.schema = "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
     .summary = "elements moved along, round the corner",
     .meta = roll_meta,
     .host_code = {{DeviceType::cuda, roll_cuda}},
     .derivatives = {{{"self"}, {}, roll_backward}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] (1) (0)", "f32[2,3] (1 2) (0 1)", "f32[2,3] 1"}},
    {.schema = "flip(Tensor self, int[] dims) -> Tensor",
     .summary = "backwards along dimensions",
     .meta = flip_meta,
     .derivatives = {{{"self"},
                      {},
                      [](Backward& b) { return call<"flip">(b.session, b.grad(), b["dims"]); }}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] (0 1)"}},
    composite_of("fliplr(Tensor self) -> Tensor", "columns backwards", [](Call& c) { flip_along(c, 1, 2); },
                 {"f32[2,3]"}),
    composite_of("flipud(Tensor self) -> Tensor", "rows backwards", [](Call& c) { flip_along(c, 0, 1); },
                 {"f32[2,3]"}),
    {.schema = "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor",
     .summary = "quarter turns",
     .meta = rot90_meta,
     .derivatives = {{{"self"},
                      {},
                      [](Backward& b) {
                        return call<"rot90">(b.session, b.grad(), -b.integer("k"), b["dims"]);
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[2,3]", "f32[2,3] 2"}}};

}  // namespace

Tables repeating_operators() {
  static constexpr Records tables[] = {kRepeating};
  return tables;
}

}  // namespace metaprof
