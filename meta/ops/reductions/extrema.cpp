// Reductions that select: largest, smallest, where they are, whether any or all.

#include "meta/autograd/engine/backward.h"
#include "meta/op/versions.h"
#include "meta/ops/ordering/selection.h"
#include "meta/ops/reductions/family.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {
namespace {

// Partial results of the plain ones have the input's size; a value with its place takes 16 bytes.
constexpr int64_t kValueWithPlace = 16;

void reduce(Call& c, size_t result, const Value& dims, int64_t accumulator) {
  const Tensor& self = c.tensor("self");
  c.allocate_all();
  reduction_buffers(c, self, reduced_dims(c, dims, self.dim()), c.result_tensor(result),
                    {.accumulator = accumulator});
}

void reduce_everything(Call& c, const Tensor& input, int64_t accumulator) {
  reduction_buffers(c, input, reduced_dims(c, Value(), input.dim()), c.result_tensor(),
                    {.accumulator = accumulator});
}

int64_t self_element(const Call& c) { return element_size(c.tensor("self").dtype()); }

// --- amax, amin, aminmax

void extremum_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  reduced_output(c, self, c["dim"], c.boolean("keepdim"), self.dtype());
}

// scale_grad_by_count: elements that are equally extreme share the gradient. Along a dimension of a tensor
// without dimensions the gradient has one.
Gradients extremum_backward(Backward& b) {
  const Value& dims = b["dim"];
  const auto count = int64_t(std::max(b.sizes("self").size(), dims.integers().size()));
  const bool keepdim = b.boolean("keepdim");
  const Tensor mask = eq(keepdim ? b("result") : restore_dims(b("result"), dims, count), b("self"));
  const Tensor grad = keepdim ? b.grad() : restore_dims(b.grad(), dims, count);
  const Tensor sharing = call<"sum.dim_IntList">(b.session, mask, dims, true);
  const Tensor share = div(grad, sharing);
  return {mul(share, mask)};
}

constexpr Op extremum(std::string_view schema, std::string_view summary) {
  return {.schema = schema,
          .summary = summary,
          .meta = extremum_meta,
          .host_code = {{DeviceType::cuda, [](Call& c) { reduce(c, 0, c["dim"], self_element(c)); }}},
          .derivatives = {{{"self"}, {"self", "result"}, extremum_backward}},
          .flops = input_flops,
          .examples = {"f32[2,3] (1)", "f32[2,3] () True"}};
}

void aminmax_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  for (int i = 0; i < 2; ++i) reduced_output(c, self, c["dim"], c.boolean("keepdim"), self.dtype());
}

// native/ReduceOps.cpp, aminmax: without a dimension over a contiguous copy.
void aminmax_cuda(Call& c) {
  if (c.given("dim")) return reduce(c, 0, c["dim"], 2 * self_element(c));
  c.allocate_all();
  reduce_everything(c, c.contiguous(c.tensor("self")), 2 * self_element(c));
}

// FunctionsManual.cpp, aminmax_backward: elements that are equally extreme share the gradient.
Tensor shared_by_extrema(Backward& b, const Tensor& grad, const Tensor& mask, const Value& dims) {
  const Tensor count = call<"sum.dim_IntList">(b.session, mask, dims, true);
  const Tensor share = div(grad, count);
  return mul(share, mask);
}

Gradients aminmax_backward(Backward& b) {
  const Tensor& self = b("self");
  const bool whole = !b.given("dim"), keepdim = b.boolean("keepdim");
  const int64_t rank = self.dim();
  Sizes dims;
  for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  if (!whole) dims = {b["dim"].integer()};
  const auto restored = [&](const Tensor& reduced) {
    if (whole) return rank == 0 ? reduced : reshape(reduced, Sizes(size_t(rank), 1));
    return keepdim ? reduced : unsqueeze(reduced, dims[0]);
  };
  Tensor gradient;
  if (b.grad(0).defined()) {
    const Tensor mask = eq(self, restored(b("min")));
    gradient = shared_by_extrema(b, restored(b.grad(0)), mask, dims);
  }
  if (b.grad(1).defined()) {
    const Tensor mask = eq(self, restored(b("max")));
    const Tensor of_max = shared_by_extrema(b, restored(b.grad(1)), mask, dims);
    gradient = gradient.defined() ? call<"add_.Tensor">(b.session, gradient, of_max) : of_max;
  }
  return {gradient};
}

constexpr Op aminmax(const Derivatives& derivatives, std::string_view node) {
  return {.schema = "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
          .summary = "smallest and largest",
          .meta = aminmax_meta,
          .host_code = {{DeviceType::cuda, aminmax_cuda}},
          .derivatives = derivatives,
          .flops = input_flops,
          .examples = {"f32[2,3]", "f32[2,3] 1 True"},
          .facts = {.node = node}};
}

// --- max and min of everything

Gradients whole_extremum_backward(Backward& b) {
  const Tensor shared = evenly_distributed(b.grad(), b("self"), b("result"));
  return {shared};
}

// native/ReduceAllOps.cpp, max: over a contiguous copy.
void whole_extremum_cuda(Call& c) {
  c.allocate(0);
  reduce_everything(c, c.contiguous(c.tensor("self")), self_element(c));
}

constexpr Op whole_extremum(std::string_view schema, std::string_view summary, std::string_view node) {
  return {.schema = schema,
          .summary = summary,
          .meta = [](Call& c) { c.output({}, c.tensor("self").dtype()); },
          .host_code = {{DeviceType::cuda, whole_extremum_cuda}},
          .derivatives = {{{"self"}, {"self", "result"}, whole_extremum_backward}},
          .flops = input_flops,
          .examples = {"f32[2,3]"},
          .facts = {.node = node}};
}

// --- max and min along a dimension, with places

constexpr Op extremum_with_place(std::string_view schema, std::string_view summary) {
  return {.schema = schema,
          .summary = summary,
          .meta = value_and_index_meta,
          .host_code = {{DeviceType::cuda, [](Call& c) { reduce(c, 0, c["dim"], kValueWithPlace); }}},
          .derivatives = {{{"self"}, {"indices"}, selected_backward}},
          .flops = input_flops,
          .examples = {"f32[2,3] 1", "f32[2,3] 0 True"},
          .facts = {.no_gradient_for = {"indices"}}};
}

// --- argmax, argmin

void place_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if (c.given("dim")) return reduced_output(c, self, c["dim"], c.boolean("keepdim"), DType::i64);
  c.output(c.boolean("keepdim") ? Sizes(size_t(self.dim()), 1) : Sizes{}, DType::i64);
}

// native/ReduceOps.cpp, argmax_argmin_impl: without a dimension over self as a vector.
void place_cuda(Call& c) {
  if (c.given("dim")) return reduce(c, 0, c["dim"], kValueWithPlace);
  c.allocate(0);
  reduce_everything(c, reshape(c.tensor("self"), Sizes{-1}), kValueWithPlace);
}

constexpr Op place(std::string_view schema, std::string_view summary) {
  return {.schema = schema,
          .summary = summary,
          .meta = place_meta,
          .host_code = {{DeviceType::cuda, place_cuda}},
          .derivatives = not_differentiable,
          .flops = input_flops,
          .examples = {"f32[2,3]", "f32[2,3] 1 True"}};
}

// --- any, all

DType truth_dtype(const Tensor& self) { return self.dtype() == DType::u8 ? DType::u8 : DType::b8; }

template <bool has_dims>
void truth_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if constexpr (!has_dims) {
    c.output({}, truth_dtype(self));
  } else {
    const Value& dims = c["dim"];
    // No dimension at all reduces nothing, unlike None.
    if (dims.kind() == Value::Kind::integers && dims.integers().empty()) {
      c.output(self.sizes(), truth_dtype(self));
    } else {
      reduced_output(c, self, dims, c.boolean("keepdim"), truth_dtype(self));
    }
  }
}

// Partial results are elements of the input; from 2.12 on truth values (aten/src/ATen/native/cuda/
// ReduceLogicKernel.cu; recorded: `shapes/reduce/*/any-*`).
template <bool has_dims, bool as_truth>
void truth_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  const Value dims = has_dims ? c["dim"] : Value();
  c.allocate(0);
  // A number, or no dimension to reduce: a cast.
  const bool nothing = dims.kind() == Value::Kind::integers && dims.integers().empty();
  if (self.dim() == 0 || self.numel() == 1 || nothing) {
    const Tensor cast = to(self, c.result_tensor().dtype());
    return;
  }
  reduction_buffers(c, self, reduced_dims(c, dims, self.dim()), c.result_tensor(),
                    {.accumulator = as_truth ? 1 : self_element(c)});
}

template <bool has_dims, bool as_truth>
constexpr Op truth(std::string_view schema, std::string_view summary, std::string_view example) {
  return {.schema = schema,
          .summary = summary,
          .meta = truth_meta<has_dims>,
          .host_code = {{DeviceType::cuda, truth_cuda<has_dims, as_truth>}},
          .derivatives = not_differentiable,
          .flops = input_flops,
          .examples = {example}};
}

// --- hash_tensor: the bits of all elements, one against the other (aten/src/ATen/native/cuda/ReduceSumProdKernel.cu)

void hash_meta(Call& c) { reduced_output(c, c.tensor("self"), c["dim"], c.boolean("keepdim"), DType::u64); }

void hash_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate(0);
  reduction_buffers(c, self, reduced_dims(c, c["dim"], self.dim()), c.result_tensor(),
                    {.accumulator = element_size(DType::u64)});
}

constexpr Op kHash[] = {
    {.schema = "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
     .summary = "exclusive or of the elements' bits",
     .meta = hash_meta,
     .host_code = {{DeviceType::cuda, hash_cuda}},
     .derivatives = not_differentiable,
     .flops = input_flops,
     .examples = {"f32[2,3]", "f32[2,3] 1 True"}}};

constexpr Op kExtremum[] = {
    extremum("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", "largest along dimensions"),
    extremum("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", "smallest along dimensions"),
    before({2, 12}, aminmax({{{"self"}, {}, not_implemented}}, "NotImplemented")),
    since({2, 12}, aminmax({{{"self"}, {"self", "min", "max"}, aminmax_backward}}, "AminmaxBackward0")),
    whole_extremum("max(Tensor self) -> Tensor", "largest of all", "MaxBackward1"),
    whole_extremum("min(Tensor self) -> Tensor", "smallest of all", "MinBackward1"),
    extremum_with_place(
        "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "largest along a dimension, and where it is"),
    extremum_with_place(
        "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "smallest along a dimension, and where it is"),
    place("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", "where the largest is"),
    place("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", "where the smallest is")};

template <bool as_truth>
constexpr auto truths(const FrameworkRange& versions) {
  std::array ops = {
      truth<false, as_truth>("any(Tensor self) -> Tensor", "some element is not 0", "b8[2,3]"),
      truth<true, as_truth>("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
                            "some element is not 0, along a dimension", "f32[2,3] 1"),
      truth<true, as_truth>("any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
                            "some element is not 0, along dimensions", "f32[2,3] (0 1)"),
      truth<false, as_truth>("all(Tensor self) -> Tensor", "no element is 0", "b8[2,3]"),
      truth<true, as_truth>("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
                            "no element is 0, along a dimension", "f32[2,3] 1"),
      truth<true, as_truth>("all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
                            "no element is 0, along dimensions", "f32[2,3] (0 1)")};
  for (Op& op : ops) op.facts.versions = versions;
  return ops;
}
constexpr auto kTruths = truths<false>({.before = {2, 12}}),
               kTruthsSince12 = truths<true>({.since = {2, 12}});

}  // namespace

Tables extremum_operators() {
  static constexpr Records tables[] = {kExtremum, kHash, kTruths, kTruthsSince12};
  return tables;
}

}  // namespace metaprof
