// Sums, means and counts.

#include "meta/autograd/engine/backward.h"
#include "meta/ops/reductions/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {
namespace {

DType sum_dtype(const Call& c, const Tensor& self) {
  return c.dtype("dtype", is_integral(self.dtype(), true) ? DType::i64 : self.dtype());
}

void sum_meta(Call& c) { c.output({}, sum_dtype(c, c.tensor("self"))); }

void sum_dims_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  reduced_output(c, self, c["dim"], c.boolean("keepdim"), sum_dtype(c, self));
}

void mean(Call& c, const Value& dims) {
  c.allocate(0);
  const DType dtype = c.result_tensor().dtype();
  const Tensor input = reduction_input(c, c.tensor("self"), dtype);
  reduction_buffers(c, input, reduced_dims(c, dims, input.dim()), c.result_tensor(),
                    {.accumulator = accumulator_bytes(dtype)});
}

void nansum(Call& c) {
  c.allocate(0);
  const DType dtype = c.result_tensor().dtype();
  const Tensor input = reduction_input(c, c.tensor("self"), dtype);
  const ReductionKernel kernel = {.accumulator = accumulator_bytes(dtype)};
  reduction_buffers(c, input, reduced_dims(c, c["dim"], input.dim()), c.result_tensor(), kernel);
}

// The gradient of a reduction, seen under the input's sizes.
Tensor expand_back(Backward& b, const Tensor& grad, const Value& dims, bool keepdim) {
  const Sizes& sizes = b.sizes("self");
  return expand(keepdim ? grad : restore_dims(grad, dims, int64_t(sizes.size())), sizes);
}

Gradients mean_backward(Backward& b) {
  const int64_t count = reduced_count(b.sizes("self"), b["dim"]);
  return {expand_back(b, b.grad(), b["dim"], b.boolean("keepdim")) / count};
}

// torch/csrc/autograd/FunctionsManual.cpp, nansum_backward.
Gradients nansum_backward(Backward& b) {
  const Tensor grad = to(b.grad(), b.dtype("self"));
  const Tensor missing = isnan(b("self"));
  const Tensor present = call<"logical_not">(b.session, missing);
  return {mul(expand_back(b, grad, b["dim"], b.boolean("keepdim")), present)};
}

// Σ over what is a number, divided by how many those are.
void nanmean_body(Call& c) {
  const Tensor& self = c.tensor("self");
  Tensor count;
  {
    const Tensor detached = call<"detach">(c.session, self);
    const Tensor present = call<"ne.Tensor">(c.session, detached, detached);
    call<"logical_not_">(c.session, present);
    count = call<"sum.dim_IntList">(c.session, present, c["dim"], c["keepdim"]);
  }
  const Tensor total = call<"nansum">(c.session, self, c["dim"], c["keepdim"], c["dtype"]);
  c.result(div(total, count));
}

// (self ≠ 0) as booleans, then their sum.
void count_nonzero_kernel(Call& c) {
  const Tensor mask = call<"ne.Scalar">(c.session, c.tensor("self"), 0);
  sum_into_result(c, mask, c["dim"]);
}

constexpr Op kSums[] = {
    {.schema = "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     .summary = "Σ of all elements",
     .meta = sum_meta,
     .host_code = {{DeviceType::cuda, [](Call& c) { sum_into_result(c, c.tensor("self"), Value()); }}},
     .derivatives = {{{"self"},
                      {},
                      [](Backward& b) -> Gradients { return {expand(b.grad(), b.sizes("self"))}; }}},
     .flops = input_flops,
     .examples = {"f32[2,3]", "i64[4]"},
     .facts = {.autocast = Autocast::fp32_set_dtype}},
    {.schema =
         "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .summary = "Σ along dimensions",
     .meta = sum_dims_meta,
     .host_code = {{DeviceType::cuda, [](Call& c) { sum_into_result(c, c.tensor("self"), c["dim"]); }}},
     .derivatives = {{{"self"},
                      {},
                      [](Backward& b) -> Gradients {
                        return {expand_back(b, b.grad(), b["dim"], b.boolean("keepdim"))};
                      }}},
     .flops = input_flops,
     .examples = {"f32[2,3] (0)", "f32[2,3,4] (0 2) True"},
     .facts = {.node = "SumBackward1", .autocast = Autocast::fp32_set_dtype}},
    {.schema =
         "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .summary = "Σ along dimensions, NaN counting as 0",
     .meta = sum_dims_meta,
     .host_code = {{DeviceType::cuda, nansum}},
     .derivatives = {{{"self"}, {"self"}, nansum_backward}},
     .flops = input_flops,
     .examples = {"f32[2,3]", "f32[2,3] (1) True"}}};

constexpr Op kMeans[] = {
    {.schema = "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     .summary = "mean of all elements",
     .meta = [](Call& c) { c.output({}, c.dtype("dtype", c.tensor("self").dtype())); },
     .host_code = {{DeviceType::cuda, [](Call& c) { mean(c, Value()); }}},
     .derivatives = {{{"self"},
                      {},
                      [](Backward& b) -> Gradients {
                        const Sizes& sizes = b.sizes("self");
                        return {expand(b.grad(), sizes) / numel(sizes)};
                      }}},
     .flops = input_flops,
     .examples = {"f32[2,3]"}},
    {.schema = "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .summary = "mean along dimensions",
     .meta =
         [](Call& c) {
           const Tensor& self = c.tensor("self");
           reduced_output(c, self, c["dim"], c.boolean("keepdim"), c.dtype("dtype", self.dtype()));
         },
     .host_code = {{DeviceType::cuda, [](Call& c) { mean(c, c["dim"]); }}},
     .derivatives = {{{"self"}, {}, mean_backward}},
     .flops = input_flops,
     .examples = {"f32[2,3] (1)", "f32[2,3,4] (1 2) True"},
     .facts = {.node = "MeanBackward1"}},
    {.schema =
         "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .summary = "mean along dimensions of what is a number",
     .meta = composite(nanmean_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3]", "f32[2,3] (1)"}}};

constexpr Op kSum[] = {
    {.schema = "count_nonzero(Tensor self, int? dim=None) -> Tensor",
     .summary = "how many elements are not 0",
     .meta = [](Call& c) { reduced_output(c, c.tensor("self"), c["dim"], false, DType::i64); },
     .host_code = {{DeviceType::cuda, count_nonzero_kernel}},
     .derivatives = not_differentiable,
     .flops = input_flops,
     .examples = {"f32[2,3]", "f32[2,3] 1"}},
    {.schema = "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
     .summary = "how many elements are not 0 along dimensions",
     .meta = [](Call& c) { reduced_output(c, c.tensor("self"), c["dim"], false, DType::i64); },
     .host_code = {{DeviceType::cuda, count_nonzero_kernel}},
     .derivatives = not_differentiable,
     .flops = input_flops,
     .examples = {"f32[2,3] (0 1)"}}};

}  // namespace

Tables sum_operators() {
  static constexpr Records tables[] = {kSums, kMeans, kSum};
  return tables;
}

}  // namespace metaprof
