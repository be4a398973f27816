// Softmax, its logarithm, and their gradients.

#include "meta/autograd/engine/backward.h"
#include "meta/ops/normalization/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/into_out.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

void softmax_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  wrap_dim(c.integer("dim"), self.dim());
  c.output(self.sizes(), c.boolean("half_to_float") ? DType::f32 : self.dtype());
}

// The kernels want contiguous operands, whose copies come after the result
// (aten/src/ATen/native/cuda/SoftMax.cu).
void softmax_cuda(Call& c) {
  c.allocate(0);
  const Tensor input = c.contiguous(c.tensor("self"));
}

void softmax_backward_meta(Call& c) {
  const Tensor& grad = c.tensor("grad_output");
  const DType input = c.dtype("input_dtype", grad.dtype());
  c.output(grad.sizes(), grad.dtype() == input ? grad.dtype() : input);
}

// grad·output in full size lives as long as the kernel (recorded: `shapes/softmax`).
void softmax_backward_cuda(Call& c) {
  c.allocate(0);
  if (c.result_tensor().numel() == 0) return;
  const Tensor product = mul(c.tensor("grad_output"), c.tensor("output"));
  const Tensor grad = c.contiguous(product), output = c.contiguous(c.tensor("output"));
}

void log_softmax_backward_cuda(Call& c) {
  c.allocate(0);
  const Tensor grad = c.contiguous(c.tensor("grad_output")), output = c.contiguous(c.tensor("output"));
}

// softmax.int and log_softmax.int: half in, float out is one kernel on CUDA; any other dtype is a cast
// before.
template <FixedString kernel>
void with_dtype_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const DType dtype = c.dtype("dtype", self.dtype());
  const bool fused = self.is_cuda() && self.dtype() == DType::f16 && dtype == DType::f32;
  const Tensor input = fused ? self : to(self, dtype);
  c.result(call<kernel>(c.session, input, c["dim"], fused));
}

// Exponentials, their sum and a division: five per element.
constexpr auto softmax_flops = elementwise_flops<5>;

// Double backward (torch/csrc/autograd/FunctionsManual.cpp, softmax_double_backward).
Gradients softmax_double_backward(Backward& b) {
  const int64_t dim = b.integer("dim");
  const Tensor& grad = b.grad();
  const Tensor &grad_output = b("grad_output"), &output = b("output");
  const Tensor first = mul(grad_output, grad);
  const Tensor second = mul(sum(mul(output, grad_output), {{dim}}, true), grad);
  const Tensor third = mul(grad_output, sum(mul(output, grad), {{dim}}, true));
  return {sub(sub(first, second), third)};
}

void safe_softmax_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  elementwise(c, {&self}, c.dtype("dtype", self.dtype()));
}

// softmax whose rows of −∞ alone give zeros instead of NaN, written in place
// (aten/src/ATen/native/SoftMax.cpp).
void safe_softmax_kernel(Call& c) {
  Session& s = c.session;
  const Tensor& self = c.tensor("self");
  c.results[0] = Value(call<"softmax.int">(s, self, c["dim"], c["dtype"]));
  const Tensor masked = call<"isneginf">(s, self);
  const Tensor masked_rows = call<"all.dim">(s, masked, c["dim"], true);
  const Tensor zero = call<"scalar_tensor">(s, 0.0, c.result_tensor().dtype(), Value(), self.device());
}

constexpr Op kSoftmax[] = {
    {.schema = "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     .summary = "exp(self) / Σ exp(self) along a dimension",
     .meta = composite(with_dtype_body<"_softmax">),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3] 1", "f32[2,3] 0 7"},
     .facts = {.autocast = Autocast::fp32_set_dtype}},
    {.schema = "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     .summary = "self − log Σ exp(self) along a dimension",
     .meta = composite(with_dtype_body<"_log_softmax">),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3] 1", "f32[2,3] 0 7"},
     .facts = {.autocast = Autocast::fp32_set_dtype}},
    {.schema = "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
     .summary = "exp(self) / Σ exp(self) along a dimension",
     .meta = softmax_meta,
     .host_code = {{DeviceType::cuda, softmax_cuda}},
     .derivatives = {{{"self"},
                      {"result"},
                      [](Backward& b) {
                        return call<"_softmax_backward_data">(b.session, b.grad(), b("result"), b["dim"],
                                                              b.dtype("self"));
                      }}},
     .flops = softmax_flops,
     .examples = {"f32[2,3] 1 False", "f32[2,3] 0 False"}},
    {.schema = "_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)",
     .summary = "out := exp(self) / Σ exp(self) along a dimension",
     .meta = into_out<softmax_meta>,
     .derivatives = not_differentiable,
     .flops = softmax_flops,
     .examples = {"f32[2,3] 1 False f32[2,3]"}},
    {.schema = "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
     .summary = "self − log Σ exp(self) along a dimension",
     .meta = softmax_meta,
     .host_code = {{DeviceType::cuda, softmax_cuda}},
     .derivatives = {{{"self"},
                      {"result"},
                      [](Backward& b) {
                        return call<"_log_softmax_backward_data">(b.session, b.grad(), b("result"), b["dim"],
                                                                  b.dtype("self"));
                      }}},
     .flops = softmax_flops,
     .examples = {"f32[2,3] 1 False", "f32[2,3] 0 False"}},
    {.schema = "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) "
               "-> Tensor",
     .summary = "output · (grad − Σ grad · output)",
     .meta = softmax_backward_meta,
     .host_code = {{DeviceType::cuda, softmax_backward_cuda}},
     .derivatives = {{{"grad_output"},
                      {"output"},
                      [](Backward& b) -> Gradients {
                        return {
                            Tensor(call<"_softmax_backward_data">(b.session, to(b.grad(), b.dtype("output")),
                                                                  b("output"), b["dim"], b["input_dtype"]))};
                      }},
                     {{"output"}, {"grad_output", "output"}, softmax_double_backward}},
     .flops = elementwise_flops<4>,
     .examples = {"f32[2,3] f32[2,3] 1 6"}},
    {.schema = "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
               "input_dtype) -> Tensor",
     .summary = "grad − exp(output) · Σ grad",
     .meta = softmax_backward_meta,
     .host_code = {{DeviceType::cuda, log_softmax_backward_cuda}},
     .derivatives = {{{"grad_output"},
                      {"output"},
                      [](Backward& b) -> Gradients {
                        const Tensor grad = to(b.grad(), b.dtype("output"));
                        const Tensor weighted = mul(grad, call<"exp">(b.session, b("output")));
                        return {sub(grad, sum(weighted, {{b.integer("dim")}}, true))};
                      }},
                     {{"output"},
                      {"grad_output", "output"},
                      [](Backward& b) -> Gradients {
                        const Tensor total = neg(sum(b("grad_output"), {{b.integer("dim")}}, true));
                        return {mul(mul(total, call<"exp">(b.session, b("output"))), b.grad())};
                      }}},
     .flops = elementwise_flops<3>,
     .examples = {"f32[2,3] f32[2,3] 1 6"}},
    {.schema = "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     .summary = "softmax, and 0 where a row holds −∞ alone",
     .meta = safe_softmax_meta,
     .host_code = {{DeviceType::cuda, safe_softmax_kernel}, {DeviceType::cpu, safe_softmax_kernel}},
     .derivatives = {{{"self"},
                      {"result"},
                      [](Backward& b) {
                        return call<"_softmax_backward_data">(b.session, b.grad(), b("result"), b["dim"],
                                                              b.dtype("self"));
                      }}},
     .flops = elementwise_flops<6>,
     .examples = {"f32[2,3] 1"}}};

}  // namespace

Tables softmax_operators() {
  static constexpr Records tables[] = {kSoftmax};
  return tables;
}

}  // namespace metaprof
