// The same elements at other places: rolled, flipped, repeated, padded, cut to a triangle.

#include <fmt/format.h>

#include "meta/autograd/backward.h"
#include "meta/ops/all.h"
#include "meta/ops/functions.h"
#include "meta/ops/iterator.h"

namespace metaprof {
namespace {

void contiguous_like_self(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(self.sizes(), self.dtype());
}

void like_self(Call& c) { c.output_like(c.tensor("self")); }

// --- roll: one dimension after the other, each through a new tensor

void roll_kernel(Call& c) {
  const Sizes &shifts = c.ints("shifts"), &dims = c.ints("dims");
  const Tensor& self = c.tensor("self");
  if (shifts.size() == 1 && dims.size() == 1) {
    c.allocate(0);
    c.contiguous(self);
    return;
  }
  Tensor rolled = self;
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    rolled = call<"roll">(c.session, rolled, Sizes{shifts[i]}, Sizes{dims[i]});
  c.allocate(0);
}

Gradients roll_backward(Backward& b) {
  Sizes back;
  for (int64_t shift : b.ints("shifts")) back.push_back(-shift);
  return {Tensor(call<"roll">(b.session, b.grad(), back, b["dims"]))};
}

// --- repeat

void repeat_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes& repeats = c.ints("repeats");
  if (int64_t(repeats.size()) < self.dim())
    c.error(fmt::format("needs a number for each dimension of {}, got {}", describe(self), repeats.size()));
  Sizes sizes = repeats;
  const size_t shift = repeats.size() - self.sizes().size();
  for (size_t d = 0; d < self.sizes().size(); ++d)
    sizes[d + shift] = multiply(sizes[d + shift], self.sizes()[d]);
  c.output(sizes, self.dtype());
}

// torch/csrc/autograd/FunctionsManual.cpp, repeat_backward: new dimensions are summed one by one, the others
// at once.
Gradients repeat_backward(Backward& b) {
  const Sizes &repeats = b.ints("repeats"), &sizes = b.sizes("self");
  if (std::find(repeats.begin(), repeats.end(), 0) != repeats.end())
    return {Tensor(call<"zeros">(b.session, sizes, b.grad().dtype(), Value(), b.grad().device()))};
  Tensor gradient = b.grad();
  const size_t shift = repeats.size() - sizes.size();
  for (size_t i = 0; i < shift; ++i) gradient = sum(gradient, Sizes{0}, false);
  Sizes split, summed;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (repeats[d + shift] != 1) {
      summed.push_back(int64_t(split.size()));
      split.push_back(repeats[d + shift]);
    }
    split.push_back(sizes[d]);
  }
  if (summed.empty()) return {gradient};
  return {sum(reshape(gradient, split), summed, false)};
}

void repeat_interleave_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Tensor input = c.given("dim") ? self : Tensor(call<"flatten.using_ints">(c.session, self));
  const int64_t dim = wrap_dim(c.given("dim") ? c.integer("dim") : 0, input.dim());
  const Tensor wide = unsqueeze(input, dim + 1);
  Sizes sizes = wide.sizes();
  sizes[size_t(dim + 1)] = c.integer("repeats");
  const Tensor copy = clone(expand(wide, sizes), MemoryFormat::contiguous);
  c.result(Tensor(call<"flatten.using_ints">(c.session, copy, dim, dim + 1)));
}

// --- padding with a constant

Sizes padded_sizes(const Call& c, const Tensor& self, const Sizes& pad) {
  Sizes sizes = self.sizes();
  if (pad.size() % 2 || pad.size() / 2 > sizes.size())
    c.error(fmt::format("pad needs two numbers for each of the last dimensions, got {} for {}", pad.size(),
                        describe(self)));
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t& size = sizes[sizes.size() - 1 - i];
    size += pad[2 * i] + pad[2 * i + 1];
    if (size < 0) c.error(fmt::format("a size of {} after padding {}", size, describe(self)));
  }
  return sizes;
}

void constant_pad_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes& pad = c.ints("pad");
  const Sizes sizes = padded_sizes(c, self, pad);
  const bool only_cuts = std::all_of(pad.begin(), pad.end(), [](int64_t p) { return p <= 0; });
  if (only_cuts) {
    // A clone of the part that is left.
    c.output(sizes, dense_strides_like(sizes, self.strides()), self.dtype());
  } else {
    const bool last = suggests_channels_last(self.sizes(), self.strides());
    const MemoryFormat format = !last             ? MemoryFormat::contiguous
                                : self.dim() == 4 ? MemoryFormat::channels_last
                                                  : MemoryFormat::channels_last_3d;
    c.output(sizes, strides_in(format, sizes), self.dtype());
  }
}

Gradients constant_pad_backward(Backward& b) {
  Sizes cut;
  for (int64_t p : b.ints("pad")) cut.push_back(-p);
  return {Tensor(call<"constant_pad_nd">(b.session, b.grad(), cut, 0))};
}

void pad_body(Call& c) {
  const std::string& mode = c["mode"].string();
  if (mode != "constant") c.error(fmt::format("mode '{}' is not modelled here", mode));
  c.result(Tensor(call<"constant_pad_nd">(c.session, c.tensor("self"), c["pad"],
                                          c.given("value") ? c["value"] : Value(0))));
}

void add_triangles(std::vector<Op>& ops) {
  ops.push_back({.schema = "tril(Tensor self, SymInt diagonal=0) -> Tensor",
                 .summary = "0 above a diagonal",
                 .meta = contiguous_like_self,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {},
                                  [](Backward& b) -> Gradients {
                                    return {Tensor(call<"tril">(b.session, b.grad(), b["diagonal"]))};
                                  }}},
                 .flops = free_of_flops,
                 .examples = {"f32[3,3] 1"},
                 .facts = {.in_place_too = true}});
  ops.push_back({.schema = "triu(Tensor self, SymInt diagonal=0) -> Tensor",
                 .summary = "0 below a diagonal",
                 .meta = contiguous_like_self,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {},
                                  [](Backward& b) -> Gradients {
                                    return {Tensor(call<"triu">(b.session, b.grad(), b["diagonal"]))};
                                  }}},
                 .flops = free_of_flops,
                 .examples = {"f32[3,3] -1"},
                 .facts = {.in_place_too = true}});
}

}  // namespace

void add_rearranging_operators(std::vector<Op>& ops) {
  add_triangles(ops);
  ops.push_back({.schema = "flip(Tensor self, int[] dims) -> Tensor",
                 .summary = "the order along dimensions reversed",
                 .meta = like_self,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {},
                                  [](Backward& b) -> Gradients {
                                    return {Tensor(call<"flip">(b.session, b.grad(), b["dims"]))};
                                  }}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,3] (0 1)"}});
  ops.push_back({.schema = "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
                 .summary = "moved along dimensions, what leaves comes in again",
                 .meta = contiguous_like_self,
                 .kernels = {{DeviceType::cuda, roll_kernel}, {DeviceType::cpu, roll_kernel}},
                 .derivatives = {{{"self"}, {}, roll_backward}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,3] (1) (0)", "f32[2,3] (1 -1) (0 1)"}});
  ops.push_back({.schema = "repeat(Tensor self, SymInt[] repeats) -> Tensor",
                 .summary = "copies side by side along each dimension",
                 .meta = repeat_meta,
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, repeat_backward}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,3] (2 1)", "f32[3] (4 2)"}});
  ops.push_back({.schema = "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, "
                           "SymInt? output_size=None) -> Tensor",
                 .summary = "every element several times in a row",
                 .meta = composite(repeat_interleave_body),
                 .kernels = {},
                 .derivatives = by_body,
                 .flops = by_body,
                 .examples = {"f32[2,3] 2 1", "f32[2] 3"}});
  ops.push_back({.schema = "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
                 .summary = "a margin of one number; a negative one cuts",
                 .meta = constant_pad_meta,
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, constant_pad_backward}},
                 .flops = free_of_flops,
                 .examples = {"f32[2,3] (1 2)", "f32[4,5] (-1 0)"}});
  ops.push_back(
      {.schema = "pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
       .summary = "a margin",
       .meta = composite(pad_body),
       .kernels = {},
       .derivatives = by_body,
       .flops = by_body,
       .examples = {"f32[2,3] (1 2)"}});
  ops.push_back({.schema = "type_as(Tensor self, Tensor other) -> Tensor",
                 .summary = "self in other's dtype, on its device",
                 .meta = composite([](Call& c) {
                   const Tensor& other = c.tensor("other");
                   c.result(Tensor(call<"to.dtype_layout">(c.session, c.tensor("self"), other.dtype(),
                                                           Value(), other.device())));
                 }),
                 .kernels = {},
                 .derivatives = by_body,
                 .flops = by_body,
                 .examples = {"f32[2] bf16[2]"}});
  ops.push_back({.schema = "lift_fresh_copy(Tensor self) -> Tensor",
                 .summary = "a constant of the program, copied",
                 .meta = like_self,
                 .kernels = {},
                 .derivatives = not_differentiable,
                 .flops = free_of_flops,
                 .examples = {"f32[2]"}});
  ops.push_back(
      {.schema = "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
       .summary = "self := value, a tensor of one element",
       .meta = [](Call& c) { c.result(c.tensor("self")); },
       .kernels = {},
       .derivatives = {{{"self"}, {}, [](Backward& b) -> Gradients { return {zeros_like(b.grad())}; }},
                       {{"value"}, {}, [](Backward& b) -> Gradients { return {sum(b.grad())}; }}},
       .flops = free_of_flops,
       .examples = {"f32[2] f32[]"},
       .facts = {.node = "FillBackward1"}});
  ops.push_back(
      {.schema = "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
       .summary = "self := 1 with probability p, else 0",
       .meta = [](Call& c) { c.result(c.tensor("self")); },
       .kernels = {},
       .derivatives = {{{"self"}, {}, [](Backward& b) -> Gradients { return {zeros_like(b.grad())}; }}},
       .flops = free_of_flops,
       .examples = {"f32[2] 0.5"},
       .facts = {.node = "BernoulliBackward1", .random = true}});
}

}  // namespace metaprof
