// Values selected along a dimension: median, mode, k-th, and what all of them share.

#include "meta/ops/ordering/selection.h"

#include "meta/ops/ordering/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {

void value_and_index_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  reduced_output(c, self, c["dim"], c.boolean("keepdim"), self.dtype());
  reduced_output(c, self, c["dim"], c.boolean("keepdim"), DType::i64);
}

Gradients selected_backward(Backward& b) {
  return {call<"value_selecting_reduction_backward">(b.session, b.grad(), b["dim"], b("indices"),
                                                     b.sizes("self"), b.boolean("keepdim"))};
}

// torch/csrc/autograd/FunctionsManual.cpp, evenly_distribute_backward. The CPU looks whether the value is NaN
// and fills a mask; here it is not.
Tensor evenly_distributed(const Tensor& grad, const Tensor& self, const Tensor& value) {
  Session& s = session_of(grad);
  if (!self.is_cuda()) {
    const Tensor mask = eq(self, value);
    const Tensor zeros = zeros_of(grad, self.sizes());
    const Tensor share = div(grad, sum(mask));
    return call<"masked_fill_.Tensor">(s, zeros, mask, share);
  }
  const Tensor self_is_nan = isnan(self), value_is_nan = isnan(value);
  call<"logical_and_">(s, self_is_nan, value_is_nan);
  const Tensor mask = eq(self, value);
  call<"logical_or_">(s, mask, self_is_nan);
  const Tensor sharing = sum(mask);
  const Tensor share = div(grad, sharing);
  return mul(mask, share);
}

namespace {

void selecting_backward_body(Call& c) {
  const Tensor& given = c.tensor("grad");
  const int64_t dim = c.integer("dim");
  const bool widen = !c.boolean("keepdim") && !c.ints("sizes").empty();
  const Tensor grad = widen ? unsqueeze(given, dim) : given;
  const Tensor indices = widen ? unsqueeze(c.tensor("indices"), dim) : c.tensor("indices");
  const Tensor zeros = zeros_of(grad, c.ints("sizes"));
  c.result(call<"scatter_.src">(c.session, zeros, dim, indices, grad));
}

// --- Everything's median: sorted, then looked up (aten/src/ATen/native/cuda/Sorting.cpp, median_impl).

Tensor sorted_values(const Tensor& self) {
  const Tensor flat = call<"flatten.using_ints">(session_of(self), self);
  Results sorted = call_all<"sort">(session_of(self), flat);
  return sorted[0];
}

void median_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.numel() == 0) return c.allocate(0);
  const Tensor sorted = sorted_values(self);
  const Tensor last = call<"select.int">(c.session, sorted, 0, -1);
  const Tensor missing = isnan(last);
  c.allocate(0);
}

void nanmedian_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.numel() == 0) return c.allocate(0);
  const Tensor sorted = sorted_values(self);
  Tensor place;
  {
    const Tensor missing = isnan(sorted);
    const Tensor count = sum(missing);
    const Tensor present = call<"rsub.Scalar">(c.session, count, self.numel() - 1);
    const Tensor half = present / 2;
    place = to(half, DType::i64);
  }
  c.allocate(0);
}

constexpr Op whole_median(std::string_view schema, std::string_view summary, void (*kernel)(Call&)) {
  return {.schema = schema,
          .summary = summary,
          .meta = [](Call& c) { c.output({}, c.tensor("self").dtype()); },
          .host_code = {{DeviceType::cuda, kernel}},
          .derivatives = {{{"self"},
                           {"self", "result"},
                           [](Backward& b) -> Gradients {
                             return {evenly_distributed(b.grad(), b("self"), b("result"))};
                           }}},
          .flops = input_flops,
          .examples = {"f32[2,3]"}};
}

// native/cuda/Sorting.cpp, kthvalue_out_impl_cuda, median_with_indices_impl.
void of_contiguous_cuda(Call& c) {
  const Tensor input = c.contiguous(c.tensor("self"));
  c.allocate_all();
}

// The slices one after the other in memory (aten/src/ATen/native/cuda/TensorModeKernel.cpp).
void mode_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate_all();
  if (self.dim() > 0 && self.numel() > 0)
    const Tensor slices = c.contiguous(transpose(self, c.integer("dim"), -1));
}

constexpr Op selecting(std::string_view schema, std::string_view summary, std::string_view example,
                       void (*kernel)(Call&), std::string_view node = {}) {
  return {.schema = schema,
          .summary = summary,
          .meta = value_and_index_meta,
          .host_code = {{DeviceType::cuda, kernel}},
          .derivatives = {{{"self"}, {"indices"}, selected_backward}},
          .flops = input_flops,
          .examples = {example},
          .facts = {.node = node, .no_gradient_for = {"indices"}}};
}

constexpr Op kSelection[] = {
    whole_median("median(Tensor self) -> Tensor", "the middle element", median_cuda),
    whole_median("nanmedian(Tensor self) -> Tensor", "the middle one of what is a number", nanmedian_cuda),
    selecting("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
              "the middle element along a dimension", "f32[2,3] 1", of_contiguous_cuda, "MedianBackward1"),
    selecting("nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
              "the middle one of what is a number along a dimension", "f32[2,3] 1", of_contiguous_cuda,
              "NanmedianBackward1"),
    selecting("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
              "the most frequent element along a dimension", "f32[2,3]", mode_cuda),
    selecting(
        "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "the k-th smallest element along a dimension", "f32[2,3] 2", of_contiguous_cuda),
    {.schema = "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, "
               "bool keepdim) -> Tensor",
     .summary = "zeros with the gradient where values were selected",
     .meta = composite(selecting_backward_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2] 1 i64[2] (2 3) False"}}};

}  // namespace

Tables selection_operators() {
  static constexpr Records tables[] = {kSelection};
  return tables;
}

}  // namespace metaprof
