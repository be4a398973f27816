// Weight normalisation: a weight as direction and length.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/normalization/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

// Norms over all dimensions but one, over all if that is −1 (WeightNorm.cpp, norm_except_dim).
Tensor norm_except(Call& c, const Tensor& v, int64_t pow, int64_t dim) {
  if (dim == -1) return call<"norm.Scalar">(c.session, v, pow);
  Sizes sizes(size_t(v.dim()), 1);
  sizes[size_t(dim)] = v.size(dim);
  if (dim == 0) {
    const Tensor rows = view(contiguous(v), Sizes{v.size(0), -1});
    return view(call<"norm.ScalarOpt_dim">(c.session, rows, pow, Sizes{1}, false), sizes);
  }
  if (dim == v.dim() - 1) {
    const Tensor columns = view(contiguous(v), Sizes{-1, v.size(-1)});
    return view(call<"norm.ScalarOpt_dim">(c.session, columns, pow, Sizes{0}, false), sizes);
  }
  return transpose(norm_except(c, transpose(v, 0, dim), pow, 0), 0, dim);
}

int64_t dim_kept(Call& c, const Tensor& v) {
  if (v.dim() == 0) c.error("the weight needs a dimension");
  const int64_t dim = c.integer("dim");
  if (dim < -1 || dim >= v.dim()) c.error(fmt::format("dim must be one of {}'s, got {}", describe(v), dim));
  return dim;
}

// One kernel takes the first or the last dimension, fp16 not (WeightNorm.cpp, _weight_norm).
void weight_norm_body(Call& c) {
  const Tensor &v = c.tensor("v"), &g = c.tensor("g");
  const int64_t dim = dim_kept(c, v);
  const Tensor direction = contiguous(v), length = contiguous(g);
  const bool half = v.dtype() == DType::f16 || g.dtype() == DType::f16;
  if (!half && (dim == 0 || dim == v.dim() - 1)) {
    Results out = call_all<"_weight_norm_interface">(c.session, direction, length, dim);
    return c.result(out[0]);
  }
  c.result(mul(direction, div(length, norm_except(c, direction, 2, dim))));
}

void interface_meta(Call& c) {
  const Tensor &v = c.tensor("v"), &g = c.tensor("g");
  c.output(v.sizes(), v.dtype());
  c.output(g.sizes(), g.strides(), accumulate_type(g.dtype()));
}

void weight_backward_meta(Call& c) {
  const Tensor &v = c.tensor("saved_v"), &g = c.tensor("saved_g");
  c.output(v.sizes(), v.dtype());
  c.output(g.sizes(), g.dtype());
}

// WeightNorm.cpp, _weight_norm_differentiable_backward: while a second derivative is recorded.
Gradients differentiable_backward(const Tensor& grad, const Tensor& v, const Tensor& g, const Tensor& norms,
                                  int64_t dim) {
  Sizes per_dim(v.sizes().size(), 1);
  per_dim[size_t(dim)] = v.size(dim);
  const Tensor product = grad * v;
  const Tensor sums = dim == 0 ? sum(view(product, Sizes{v.size(0), -1}), Sizes{1}, false)
                               : sum(view(product, Sizes{-1, v.size(dim)}), Sizes{0}, false);
  const Tensor along = view(sums, per_dim);
  Tensor across;
  {
    const Tensor square = norms * norms;
    const Tensor shadow = v * (along / square);
    across = grad - shadow;
  }
  return {g / norms * across, along / norms};
}

Gradients interface_backward(Backward& b) {
  if (!b.grad().defined()) return {Tensor(), Tensor()};
  const Tensor grad = contiguous(b.grad());
  if (b.session.modes.grad)
    return differentiable_backward(grad, b("v"), b("g"), b("result1"), b.integer("dim"));
  Results gradients =
      call_all<"_weight_norm_interface_backward">(b.session, grad, b("v"), b("g"), b("result1"), b["dim"]);
  return {gradients[0], gradients[1]};
}

constexpr Op kWeightNorm[] = {
    composite_of("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
                 "norms over all dimensions but one",
                 [](Call& c) {
                   const Tensor& v = c.tensor("v");
                   c.result(norm_except(c, v, c.integer("pow"), dim_kept(c, v)));
                 },
                 {"f32[4,3]", "f32[4,3,5] 2 1", "f32[4,3,5] 1 2", "f32[4,3] 2 -1"}),
    {.schema = "_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
     .summary = "v · g / norm of v over all dimensions but one",
     .meta = composite(weight_norm_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[4,3] f32[4,1]", "f32[4,3,5] f32[1,3,1] 1", "f32[4,3] f32[] -1"}},
    {.schema = "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
     .summary = "weight_norm by one kernel: weight, norms",
     .meta = interface_meta,
     .derivatives = {{{"v", "g"}, {"g", "v", "result1"}, interface_backward}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 3 * c.tensor("v").numel()}; },
     .examples = {"f32[4,3] f32[4,1]"}},
    {.schema = "_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor "
               "saved_norms, int dim) -> (Tensor, Tensor)",
     .summary = "gradients of weight_norm",
     .meta = weight_backward_meta,
     .derivatives = not_differentiable,
     .flops = [](const Call& c) -> FlopCount { return {.own = 6 * c.tensor("saved_v").numel()}; },
     .examples = {"f32[4,3] f32[4,3] f32[4,1] f32[4,1] 0"}}};

}  // namespace

Tables weight_norm_operators() {
  static constexpr Records tables[] = {kWeightNorm};
  return tables;
}

}  // namespace metaprof
