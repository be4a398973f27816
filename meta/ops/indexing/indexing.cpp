// self[indices] and self[indices] = values, with index tensors and masks.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/indexing/advanced_index.h"
#include "meta/ops/indexing/family.h"
#include "meta/ops/rules/cub.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/sizes_by_data.h"

namespace metaprof {
namespace {

void index_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const AdvancedIndex plan(c, self, c.tensors("indices"), IndexUse::geometry);
  c.output(plan.result_sizes(), plan.result_strides(), self.dtype());
}

void index_cuda(Call& c) {
  const AdvancedIndex plan(c, c.tensor("self"), c.tensors("indices"), IndexUse::elementwise);
  c.allocate(0);
}

// --- index_put with accumulate: sorted by place (aten/src/ATen/native/cuda/Indexing.cu,
// index_put_with_sort_kernel)

// How indices are compared with the size that they index; null: they are not.
using RangeCheck = void (*)(Call& c, const Tensor& index, int64_t size);

void check_one_bound_after_the_other(Call& c, const Tensor& index, int64_t size) {
  {
    const Tensor largest = call<"max">(c.session, index);
    const Tensor below = call<"lt.Scalar">(c.session, largest, size);
  }
  const Tensor smallest = call<"min">(c.session, index);
  const Tensor above = call<"ge.Scalar">(c.session, smallest, -size);
}

// From 2.13 on (recorded: `shapes/index_put/*-accumulate`).
void check_both_bounds(Call& c, const Tensor& index, int64_t size) {
  Tensor largest, smallest;
  {
    const Results both = call_all<"aminmax">(c.session, index);
    smallest = both[0];
    largest = both[1];
  }
  { const Tensor below = call<"lt.Scalar">(c.session, largest, size); }
  { const Tensor above = call<"ge.Scalar">(c.session, smallest, -size); }
}

// Places in the whole tensor: Σ (index mod size) · stride; each term on the device of its index tensor.
Tensor linear_index(Call& c, const AdvancedIndex& plan, RangeCheck check) {
  Tensor linear;
  const Sizes strides = contiguous_strides(plan.source.sizes());
  for (int64_t d = plan.first; d < plan.first + plan.count; ++d) {
    const Tensor& index = plan.indices[size_t(d)];
    const int64_t size = plan.source.size(d);
    if (check && index.numel() > 0) check(c, index, size);
    Tensor place;
    {
      const Tensor wrapped = call<"remainder.Scalar">(c.session, index, size);
      place = wrapped * strides[size_t(d)];
      if (place.device() != plan.source.device())
        place = call<"to.device">(c.session, place, plan.source.device(), place.dtype());
    }
    if (!linear.defined()) linear = place;
  }
  return linear;
}

int64_t bits_of(int64_t largest) {
  int64_t bits = 1;
  for (; largest > 1; largest >>= 1) ++bits;
  return bits;
}

// One value per written element.
Tensor expanded_values(Call& c, const Tensor& values, const AdvancedIndex& plan) {
  const Sizes sizes = plan.result_sizes();
  return c.contiguous(values.numel() < numel(sizes) ? expand(values, sizes) : values);
}

void accumulate(Call& c, const Tensor& given, const Tensor& values, RangeCheck check) {
  const Tensor self = c.contiguous(given);
  AdvancedIndex plan(c, self, c.tensors("indices"), IndexUse::accumulation, values.sizes());
  Tensor linear = linear_index(c, plan, check);
  plan.indices.clear();
  int64_t after = 1, largest = 0;
  for (int64_t d = 0; d < plan.source.dim(); ++d) {
    if (d >= plan.first + plan.count) after *= plan.source.size(d);
    largest += (self.size(d) - 1) * self.strides()[size_t(d)];
  }
  const Tensor expanded = expanded_values(c, values, plan);
  const int64_t count = linear.numel();
  if (count == 0 || after == 0) return;
  const Tensor source = c.contiguous(plan.source);
  linear = reshape(linear, Sizes{-1});
  const Tensor sorted = c.temporary(Sizes{count}, DType::i64);
  const Tensor original = c.temporary(Sizes{count}, DType::i64);
  const Tensor range = c.temporary(Sizes{count}, DType::i64);
  c.temporary_bytes(cub_bytes<cub_sort_bytes>(c, count, 8, 8, bits_of(largest / after)));
}

// One number of the host at the true elements of one mask is filled in (canDispatchToMaskedFill).
bool fills_mask(const Call& c, const Tensor& values) {
  if (c.boolean("accumulate") || values.numel() != 1 || !values.device().is_cpu()) return false;
  int masks = 0;
  for (const Tensor& index : c.tensors("indices")) {
    if (!index.defined()) continue;
    if (index.dtype() != DType::b8 && index.dtype() != DType::u8) return false;
    ++masks;
  }
  return masks == 1;
}

void put(Call& c, const Tensor& self, RangeCheck check) {
  const Tensor& given = c.tensor("values");
  if (fills_mask(c, given)) return;
  Tensor values = given;
  if (given.device() != self.device() && given.dim() == 0) values = c.temporary({}, given.dtype());
  if (c.boolean("accumulate") || c.session.modes.deterministic) return accumulate(c, self, values, check);
  const AdvancedIndex plan(c, self, c.tensors("indices"), IndexUse::elementwise, values.sizes());
}

void index_put_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const AdvancedIndex plan(c, self, c.tensors("indices"), IndexUse::geometry, c.tensor("values").sizes());
  if (!plan.reads_data) {
    const Sizes sizes = plan.result_sizes();
    if (broadcast(c.tensor("values").sizes(), sizes) != sizes)
      c.error(fmt::format("values {} do not broadcast to {}", describe(c.tensor("values")),
                          to_string(SizesView(sizes))));
  }
  c.output_like(self);
}

template <RangeCheck check>
void index_put_cuda(Call& c) {
  c.allocate(0);
  put(c, c.result_tensor(), check);
}

template <RangeCheck check>
void index_put_impl_cuda(Call& c) {
  put(c, c.tensor("self"), c.boolean("unsafe") ? nullptr : check);
}

FlopCount put_flops(const Call& c) {
  return {.own = c.boolean("accumulate") ? c.tensor("values").numel() : 0};
}

Gradients index_backward(Backward& b) {
  const Tensor zeros =
      call<"new_zeros">(b.session, b.grad(), b.sizes("self"), b.dtype("self"), 0, b.shape("self")->device);
  return {call<"_index_put_impl_">(b.session, zeros, b.list("indices"), b.grad(), true, true)};
}

Gradients index_put_self_backward(Backward& b) {
  if (b.boolean("accumulate")) return {b.grad()};
  const TensorImpl& values = *b.shape("values");
  const Tensor zeros = call<"zeros">(b.session, values.sizes, values.dtype, Value(), values.device);
  return {call<"index_put">(b.session, b.grad(), b.list("indices"), zeros, false)};
}

// The values' gradient is of their size, also where a mask says how many there are.
Gradients index_as(Backward& b, SizesView sizes) {
  const Scoped<SizesByData> known(b.session.sizes_by_data, {sizes, false});
  return {call<"index.Tensor">(b.session, b.grad(), b.list("indices"))};
}

constexpr Derivatives index_put_derivatives() {
  return {{{"self"}, {"indices"}, index_put_self_backward},
          {{"values"}, {"indices"}, [](Backward& b) { return index_as(b, b.sizes("values")); }}};
}

// --- Indices that may lie outside where a mask is false (TensorAdvancedIndexing.cpp, _unsafe_masked_index).

Value::Tensors clamped_indices(Call& c) {
  const Tensor& self = c.tensor("self");
  Value::Tensors clamped = c.tensors("indices");
  for (size_t d = 0; d < clamped.size(); ++d)
    if (clamped[d].defined())
      clamped[d] = call<"clamp">(c.session, clamped[d], -self.size(int(d)), self.size(int(d)) - 1);
  return clamped;
}

// self[indices], and `fill` where the mask is false.
void masked_index_cuda(Call& c) {
  const Value::Tensors indices = clamped_indices(c);
  const Tensor taken = call<"index.Tensor">(c.session, c["self"], indices);
  const Tensor outside = call<"logical_not">(c.session, c["mask"]);
  c.adopt(0, masked_fill(taken, outside, c["fill"]));
}

Gradients masked_index_backward(Backward& b) {
  const Tensor zeros =
      call<"new_zeros">(b.session, b.grad(), b.sizes("self"), b.dtype("self"), 0, b.shape("self")->device);
  return {
      call<"_unsafe_masked_index_put_accumulate">(b.session, zeros, b("mask"), b.list("indices"), b.grad())};
}

// self with self[indices] += values where the mask is true.
void masked_index_put_cuda(Call& c) {
  const Value::Tensors indices = clamped_indices(c);
  Tensor values;
  {
    const Tensor outside = call<"logical_not">(c.session, c["mask"]);
    values = masked_fill(c.tensor("values"), outside, 0);
  }
  c.adopt(0, call<"index_put">(c.session, c["self"], indices, values, true));
}

// --- masks

void masked_select_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &mask = c.tensor("mask");
  const Tensor* operands[] = {&self, &mask};
  broadcast_all(c, operands);
  c.output(Sizes{size_by_data(c)}, self.dtype());
}

void masked_select_cuda(Call& c) {
  const Tensor &self = c.tensor("self"), &mask = c.tensor("mask");
  const Tensor* operands[] = {&self, &mask};
  const Sizes sizes = broadcast_all(c, operands);
  const Tensor places = call<"nonzero">(c.session, expand(mask, sizes));
  c.allocate(0);
}

void masked_select_backward_body(Call& c) {
  const Tensor &input = c.tensor("input"), &mask = c.tensor("mask");
  const Tensor wide = expand(input, broadcast(input.sizes(), mask.sizes()));
  const Tensor zeros =
      call<"zeros_like">(c.session, wide, Value(), Value(), Value(), Value(), MemoryFormat::preserve);
  c.result(call<"masked_scatter_">(c.session, zeros, mask, c["grad"]));
}

void masked_scatter_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &mask = c.tensor("mask");
  const Tensor* operands[] = {&self, &mask};
  c.output(broadcast_all(c, operands), self.dtype());
}

// A running count of the mask says which element of the source goes where.
void masked_scatter_cuda(Call& c) {
  c.allocate(0);
  const Tensor& result = c.result_tensor();
  const int64_t count = result.numel();
  if (count == 0) return;
  const Tensor running = c.temporary(Sizes{count}, DType::i64);
  const Tensor mask = c.contiguous(expand(c.tensor("mask"), result.sizes()));
  c.temporary_bytes(cub_scan_bytes(count, 8));
  const Tensor source = c.contiguous(c.tensor("source"));
}

// How many elements were taken is data: the rest of the gradient is zeros.
void masked_scatter_backward_body(Call& c) {
  const Tensor& grad = c.tensor("grad_output");
  const Sizes& sizes = c.ints("sizes");
  const int64_t count = numel(sizes);
  const WithSizeByData all_were_taken(c.session, std::min(count, grad.numel()));
  Tensor taken = call<"masked_select">(c.session, grad, c["mask"]);
  if (taken.numel() < count) {
    const Tensor rest = zeros_of(grad, Sizes{count - taken.numel()});
    taken = call<"cat">(c.session, std::vector<Tensor>{taken, rest}, 0);
  }
  c.result(view(taken, sizes));
}

constexpr Op kMasked[] = {
    {.schema = "masked_select(Tensor self, Tensor mask) -> Tensor",
     .summary = "the elements where the mask is true",
     .meta = masked_select_meta,
     .host_code = {{DeviceType::cuda, masked_select_cuda}},
     .derivatives = {{{"self"},
                      {"self", "mask"},
                      [](Backward& b) -> Gradients {
                        return {Tensor(
                            call<"masked_select_backward">(b.session, b.grad(), b("self"), b("mask")))};
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] b8[2,3]"},
     .facts = {.reads_data = true, .host_reads = true}},
    {.schema = "masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor",
     .summary = "zeros with the gradient where the mask is true",
     .meta = composite(masked_select_backward_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[0] f32[2,3] b8[2,3]"}},
    {.schema = "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
     .summary = "self with elements of source where the mask is true",
     .meta = masked_scatter_meta,
     .host_code = {{DeviceType::cuda, masked_scatter_cuda}},
     .derivatives = {{{"self"},
                      {"mask"},
                      [](Backward& b) {
                        return call<"masked_fill.Scalar">(b.session, b.grad(), b("mask"), 0);
                      }},
                     {{"source"},
                      {"mask"},
                      [](Backward& b) {
                        return call<"masked_scatter_backward">(b.session, b.grad(), b("mask"),
                                                               b.sizes("source"));
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] b8[2,3] f32[6]"},
     .facts = {.in_place_too = true}},
    {.schema = "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor",
     .summary = "the gradient where the mask is true, then zeros",
     .meta = composite(masked_scatter_backward_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3] b8[2,3] (6)"}}};

constexpr Op kIndexing[] = {{.schema = "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
                             .summary = "self[indices]",
                             .meta = index_meta,
                             .host_code = {{DeviceType::cuda, index_cuda}},
                             .derivatives = {{{"self"}, {"indices"}, index_backward}},
                             .flops = free_of_flops,
                             .examples = {"f32[5,3] (i64[2])", "f32[5,3,4] (None i64[2,1] i64[1,3])",
                                          "f32[5,3,4] (i64[2] None i64[2])"}}};

constexpr Op kMaskedIndexing[] = {
    {.schema = "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
     .summary = "self[indices] where the mask is true, else a number",
     .meta = index_meta,
     .host_code = {{DeviceType::cuda, masked_index_cuda}, {DeviceType::cpu, masked_index_cuda}},
     .derivatives = {{{"self"}, {"indices", "mask"}, masked_index_backward}},
     .flops = free_of_flops,
     .examples = {"f32[5,3] b8[2,4] (i64[2,1] i64[1,4]) 1", "f32[5,3] b8[2,3] (i64[2]) 0"}},
    {.schema = "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor "
               "values) -> Tensor",
     .summary = "self with self[indices] += values where the mask is true",
     .meta = [](Call& c) { c.output_like(c.tensor("self")); },
     .host_code = {{DeviceType::cuda, masked_index_put_cuda}, {DeviceType::cpu, masked_index_put_cuda}},
     .derivatives = {{{"self"}, {}, [](Backward& b) { return b.grad(); }},
                     {{"values"},
                      {"indices", "mask"},
                      [](Backward& b) {
                        return call<"_unsafe_masked_index">(b.session, b.grad(), b("mask"), b.list("indices"),
                                                            0);
                      }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = c.tensor("values").numel()}; },
     .examples = {"f32[5,3] b8[2,4] (i64[2,1] i64[1,4]) f32[2,4]"},
     .facts = {.takes = "indices.length > 0"}}};

template <RangeCheck check>
constexpr auto writes(const FrameworkRange& versions) {
  std::array ops = {
      Op{.schema =
             "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
         .summary = "self with self[indices] = values, or += values",
         .meta = index_put_meta,
         .host_code = {{DeviceType::cuda, index_put_cuda<check>}},
         .derivatives = index_put_derivatives(),
         .flops = put_flops,
         .examples = {"f32[5,3] (i64[2]) f32[2,3]", "f32[5,3] (i64[2]) f32[2,3] True",
                      "f32[5,3] (i64[2]) f32[]"},
         .facts = {.in_place_too = true, .autocast = Autocast::promote}},
      Op{.schema = "_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool "
                   "accumulate=False, bool unsafe=False) -> Tensor(a!)",
         .summary = "self[indices] = values, or += values",
         .meta = [](Call& c) { c.result(c.tensor("self")); },
         .host_code = {{DeviceType::cuda, index_put_impl_cuda<check>}},
         .derivatives = index_put_derivatives(),
         .flops = put_flops,
         .examples = {"f32[5,3] (i64[2]) f32[2,3] True"},
         .facts = {.node = "IndexPutImplBackward0"}}};
  for (Op& op : ops) op.facts.versions = versions;
  return ops;
}
constexpr auto kWrites = writes<check_one_bound_after_the_other>({.before = {2, 13}}),
               kWritesSince13 = writes<check_both_bounds>({.since = {2, 13}});

}  // namespace

Tables indexing_operators() {
  static constexpr Records tables[] = {kMasked, kIndexing, kMaskedIndexing, kWrites, kWritesSince13};
  return tables;
}

}  // namespace metaprof
