// Variance, norms, products, log-sum-exp.

#include <cmath>
#include <limits>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/reductions/family.h"
#include "meta/ops/reductions/norms.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {
namespace {

// --- var, std, and with their mean

template <bool with_mean>
void variance_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const bool keepdim = c.boolean("keepdim");
  reduced_output(c, self, c["dim"], keepdim, real_type(self.dtype()));
  if constexpr (with_mean) reduced_output(c, self, c["dim"], keepdim, self.dtype());
}

// Welford's partial results: mean, sum of squares, two counts; two values at once, never loaded as vectors.
void variance_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate_all();
  const ReductionKernel kernel = {.accumulator = self.dtype() == DType::f64 ? 32 : 16,
                                  .values_per_thread = 2};
  reduction_buffers(c, self, reduced_dims(c, c["dim"], self.dim()), c.result_tensor(), kernel);
}

double correction(const Value& given) { return given.is_none() ? 1 : given.real(); }

// torch/csrc/autograd/FunctionsManual.cpp, var_backward.
Tensor variance_gradient(Backward& b, const Tensor& given, const Tensor& self) {
  const Value& dims = b["dim"];
  const double lost = correction(b["correction"]);
  const bool whole = self.dim() == 0 || dims.is_none();
  if (whole && double(self.numel()) - lost <= 0) {
    const Tensor average = mean(self);
    const Tensor same = eq(self, average);
    const Tensor extreme = call<"where.Scalar">(b.session, same, std::numeric_limits<double>::quiet_NaN(),
                                                std::numeric_limits<double>::infinity());
    return mul(given, extreme);
  }
  Tensor grad = given;
  if (!whole && !b.boolean("keepdim") && self.dim() > 1) grad = restore_dims(grad, dims, self.dim());
  const Tensor average = whole ? mean(self) : mean(self, dims.integers(), true);
  const Tensor difference = sub(self, average);
  const double count = double(whole ? self.numel() : reduced_count(self.sizes(), dims));
  const Tensor scaled = grad * (2 / (count - lost));
  return mul(scaled, difference);
}

Tensor deviation_gradient(Backward& b, const Tensor& grad, const Tensor& deviation) {
  Tensor variance;
  {
    const Tensor twice = deviation * 2;
    variance = div(grad, twice);
    const Tensor zero = eq(deviation, 0);
    masked_fill_(variance, zero, 0);
  }
  return variance_gradient(b, variance, b("self"));
}

Tensor mean_gradient(Backward& b, const Tensor& given) {
  const Sizes& sizes = b.sizes("self");
  const Value& dims = b["dim"];
  const Tensor grad = b.boolean("keepdim") ? given : restore_dims(given, dims, int64_t(sizes.size()));
  return expand(grad, sizes) / reduced_count(sizes, dims);
}

template <bool deviation>
Gradients with_mean_backward(Backward& b) {
  Tensor gradient;
  if (b.grad(0).defined()) {
    if constexpr (deviation) {
      gradient = deviation_gradient(b, b.grad(0), b("result0"));
    } else {
      gradient = variance_gradient(b, b.grad(0), b("self"));
    }
  }
  if (b.grad(1).defined()) {
    const Tensor of_mean = mean_gradient(b, b.grad(1));
    gradient = gradient.defined() ? add(gradient, of_mean) : of_mean;
  }
  return {gradient};
}

constexpr Op variance(std::string_view schema, std::string_view summary, void (*meta)(Call&),
                      Derivative derivative) {
  return {.schema = schema,
          .summary = summary,
          .meta = meta,
          .host_code = {{DeviceType::cuda, variance_cuda}},
          .derivatives = {derivative},
          .flops = [](const Call& c) -> FlopCount { return {.own = 3 * c.tensor("self").numel()}; },
          .examples = {"f32[2,3]", "f32[2,3] (1) 0", "f32[2,3] (1) 1 True"}};
}

// The older overloads: `unbiased` is a correction of 1 or 0.
template <FixedString corrected, bool has_dims, bool pair>
void unbiased_body(Call& c) {
  const int64_t lost = c.boolean("unbiased") ? 1 : 0;
  const Value dims = has_dims ? c["dim"] : Value();
  const bool keepdim = has_dims && c.boolean("keepdim");
  Results results = call_all<corrected>(c.session, c.tensor("self"), dims, lost, keepdim);
  c.result(results[0]);
  if constexpr (pair) c.result(results[1]);
}

constexpr Op kVariances[] = {
    variance("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
             "-> Tensor",
             "variance", variance_meta<false>,
             {{"self"},
              {"self"},
              [](Backward& b) -> Gradients { return {variance_gradient(b, b.grad(), b("self"))}; }}),
    variance("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
             "-> Tensor",
             "standard deviation", variance_meta<false>,
             {{"self"},
              {"self", "result"},
              [](Backward& b) -> Gradients { return {deviation_gradient(b, b.grad(), b("result"))}; }}),
    variance("var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
             "keepdim=False) -> (Tensor, Tensor)",
             "variance and mean", variance_meta<true>, {{"self"}, {"self"}, with_mean_backward<false>}),
    variance("std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
             "keepdim=False) -> (Tensor, Tensor)",
             "standard deviation and mean", variance_meta<true>,
             {{"self"}, {"self", "result0"}, with_mean_backward<true>}),
    composite_of("var(Tensor self, bool unbiased=True) -> Tensor", "variance of all",
                 unbiased_body<"var.correction", false, false>, {"f32[2,3]"}),
    composite_of("std(Tensor self, bool unbiased=True) -> Tensor", "standard deviation of all",
                 unbiased_body<"std.correction", false, false>, {"f32[2,3]"}),
    composite_of("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", "variance and mean of all",
                 unbiased_body<"var_mean.correction", false, true>, {"f32[2,3]"}),
    composite_of("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
                 "standard deviation and mean of all", unbiased_body<"std_mean.correction", false, true>,
                 {"f32[2,3]"}),
    composite_of("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
                 "variance along dimensions", unbiased_body<"var.correction", true, false>, {"f32[2,3] (1)"}),
    composite_of("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
                 "standard deviation along dimensions", unbiased_body<"std.correction", true, false>,
                 {"f32[2,3] (1)"}),
    composite_of(
        "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
        "variance and mean along dimensions", unbiased_body<"var_mean.correction", true, true>,
        {"f32[2,3] (1)"}),
    composite_of(
        "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
        "standard deviation and mean along dimensions", unbiased_body<"std_mean.correction", true, true>,
        {"f32[2,3] (1)"})};

// --- prod

DType product_dtype(const Call& c) {
  const DType self = c.tensor("self").dtype();
  return c.dtype("dtype", is_integral(self, true) ? DType::i64 : self);
}

void product_cuda(Call& c, const Value& dims) {
  c.allocate(0);
  const DType dtype = c.result_tensor().dtype();
  const Tensor input = reduction_input(c, c.tensor("self"), dtype);
  reduction_buffers(c, input, reduced_dims(c, dims, input.dim()), c.result_tensor(),
                    {.accumulator = accumulator_bytes(dtype)});
}

// FunctionsManual.cpp, prod_backward: it looks for zeros; without any the gradient is grad · result / self.
Gradients whole_product_backward(Backward& b) {
  const Tensor self = to(b("self"), b.grad().dtype());
  if (self.dim() == 0) return {clone(b.grad())};
  {
    const Tensor zero = eq(self, 0);
    call<"nonzero">(b.session, zero);
  }
  const Tensor quotient = conj(div(b("result"), self));
  return {mul(b.grad(), quotient)};
}

Gradients product_backward(Backward& b) {
  const Tensor self = to(b("self"), b.grad().dtype());
  if (self.dim() == 0) return {clone(b.grad())};
  const int64_t dim = wrap_dim(b.integer("dim"), self.dim());
  const bool keepdim = b.boolean("keepdim");
  const Tensor grad = keepdim ? b.grad() : unsqueeze(b.grad(), dim);
  const Tensor result = keepdim ? b("result") : unsqueeze(b("result"), dim);
  const Tensor zero = eq(self, 0);
  const Tensor zeros_per_slice = sum(zero, Sizes{dim}, true);
  { const Tensor zeros = sum(zeros_per_slice); }
  const Tensor quotient = conj(div(result, self));
  return {mul(grad, quotient)};
}

constexpr Op kProducts[] = {
    {.schema = "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     .summary = "product of all elements",
     .meta = [](Call& c) { c.output({}, product_dtype(c)); },
     .host_code = {{DeviceType::cuda, [](Call& c) { product_cuda(c, Value()); }}},
     .derivatives = {{{"self"}, {"self", "result"}, whole_product_backward}},
     .flops = input_flops,
     .examples = {"f32[2,3]"},
     .facts = {.autocast = Autocast::fp32_set_dtype}},
    {.schema = "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .summary = "product along a dimension",
     .meta =
         [](Call& c) {
           reduced_output(c, c.tensor("self"), c["dim"], c.boolean("keepdim"), product_dtype(c));
         },
     .host_code = {{DeviceType::cuda, [](Call& c) { product_cuda(c, c["dim"]); }}},
     .derivatives = {{{"self"}, {"self", "result"}, product_backward}},
     .flops = input_flops,
     .examples = {"f32[2,3] 1", "f32[2,3] 0 True"},
     .facts = {.node = "ProdBackward1", .autocast = Autocast::fp32_set_dtype}}};

// --- logsumexp (aten/src/ATen/native/ReduceOps.cpp, logsumexp_out_impl)

void logsumexp_kernel(Call& c) {
  const Tensor self = to(c.tensor("self"), c.result_tensor().dtype());
  if (self.numel() == 0) {
    const Tensor powers = exp(self);
    return sum_into_result(c, powers, c["dim"]);
  }
  const Tensor largest = call<"amax">(c.session, self, c["dim"], true);
  {
    const Tensor magnitude = abs(largest);
    const Tensor infinite = eq(magnitude, std::numeric_limits<double>::infinity());
  }
  const Tensor powers = sub(self, largest);
  sum_into_result(c, powers, c["dim"]);
}

Gradients logsumexp_backward(Backward& b) {
  const auto count = int64_t(b.sizes("self").size());
  const bool keepdim = b.boolean("keepdim") || count == 0;
  const Tensor grad = keepdim ? b.grad() : restore_dims(b.grad(), b["dim"], count);
  const Tensor result = keepdim ? b("result") : restore_dims(b("result"), b["dim"], count);
  const Tensor difference = sub(b("self"), result);
  const Tensor softmax = conj(exp(difference));
  return {mul(grad, softmax)};
}

constexpr Op kStatistics[] = {{.schema = "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
                               .summary = "log Σ exp(self) along dimensions",
                               .meta =
                                   [](Call& c) {
                                     const Tensor& self = c.tensor("self");
                                     reduced_output(c, self, c["dim"], c.boolean("keepdim"),
                                                    to_floating(self.dtype()));
                                   },
                               .host_code = {{DeviceType::cuda, logsumexp_kernel}},
                               .derivatives = {{{"self"}, {"self", "result"}, logsumexp_backward}},
                               .flops = by_body,
                               .examples = {"f32[2,3] (1)", "f32[2,3] (0 1) True"},
                               .facts = {.autocast = Autocast::fp32}}};

}  // namespace

Tables statistics_operators() {
  static constexpr Records tables[] = {kVariances, kProducts, kStatistics};
  return tables;
}

}  // namespace metaprof
