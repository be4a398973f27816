// Activations with a weight, a gate, noise or a second result.

#include <fmt/format.h>

#include "meta/ops/pointwise/family.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

// --- prelu

void prelu_body(Call& c) {
  const Tensor &self = c.tensor("self"), &weight = c.tensor("weight");
  const int64_t channels = self.dim() > 1 ? self.size(1) : 1;
  if (weight.numel() != 1 && weight.numel() != channels)
    c.error(fmt::format("needs one weight or {}, got {}", channels, describe(weight)));
  Tensor broadcast = weight;
  if (self.dim() != weight.dim()) {
    Sizes sizes(size_t(self.dim()), 1);
    if (self.dim() > 1) sizes[1] = weight.numel();
    broadcast = reshape(weight, sizes);
  }
  c.result(call<"_prelu_kernel">(c.session, self, broadcast));
}

// The order of dimensions is first that of self (native/Activation.cpp, _prelu_kernel_backward).
void prelu_backward_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &weight = c.tensor("weight"), &grad = c.tensor("grad_output");
  const DType dtype = result_type({&self, &weight, &grad});
  elementwise(c, {&self, &weight, &grad}, dtype);
  elementwise(c, {&self, &weight, &grad}, dtype);
}

Tensor prelu_of_gradient(Backward& b) {
  const Tensor &self = b("self"), &of_self = b.grad(0), &of_weight = b.grad(1);
  if (!of_self.defined()) {
    const Tensor below = of_weight * self, zero = zeros_of(self, Sizes{});
    return where(ge(self, 0), zero, below);
  }
  Tensor below = of_self * b("weight");
  if (of_weight.defined()) below = below + of_weight * self;
  return where(ge(self, 0), of_self, below);
}

// The slope times what the other result asks for.
Tensor prelu_below(Backward& b, const Tensor& gradient) {
  const Tensor& self = b("self");
  if (!gradient.defined()) return zeros_like(self);
  const Tensor below = b("grad_output") * gradient, zero = zeros_of(self, Sizes{});
  return where(ge(self, 0), zero, below);
}

constexpr Derivatives prelu_twice() {
  return {{{"grad_output"}, {"self", "weight"}, [](Backward& b) { return prelu_of_gradient(b); }},
          {{"self"}, {"grad_output", "self"}, [](Backward& b) { return prelu_below(b, b.grad(1)); }},
          {{"weight"}, {"grad_output", "self"}, [](Backward& b) { return prelu_below(b, b.grad(0)); }}};
}

constexpr Op kPrelu[] = {
    under_autocast(
        Autocast::lower_precision,
        composite_of("prelu(Tensor self, Tensor weight) -> Tensor", "self where self > 0, else weight · self",
                     prelu_body, {"f32[2,3] f32[3]", "f32[2,3] f32[1]", "f32[4] f32[]"})),
    only_functional(function_of_two(
        "_prelu_kernel(Tensor self, Tensor weight) -> Tensor", "self where self > 0, else weight · self",
        [](Call& c) { c.output_like(c.tensor("self")); },
        {{{"self", "weight"},
          {"self", "weight"},
          [](Backward& b) -> Gradients {
            Results gradients =
                call_all<"_prelu_kernel_backward">(b.session, b.grad(), b("self"), b("weight"));
            return {gradients[0], gradients[1]};
          }}},
        {"f32[2,3] f32[1,3]"})),
    {.schema = "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
     .summary = "gradients of prelu; that of the weight for each element",
     .meta = prelu_backward_meta,
     .derivatives = prelu_twice(),
     .flops = elementwise_flops<2>,
     .examples = {"f32[2,3] f32[2,3] f32[1,3]"}}};

// --- glu

Sizes half_of(const Call& c) {
  const Tensor& self = c.tensor("self");
  Sizes sizes = self.sizes();
  int64_t& size = sizes[size_t(wrap_dim(c.integer("dim"), self.dim()))];
  if (size % 2 != 0) c.error(fmt::format("halves a dimension of even size; got {}", describe(self)));
  size /= 2;
  return sizes;
}

Tensor glu_of_gradient(Backward& b) {
  const Tensor& self = b("self");
  const int64_t dim = wrap_dim(b.integer("dim"), self.dim());
  Sizes half = self.sizes();
  const int64_t size = half[size_t(dim)] /= 2;
  Tensor both;
  {
    const Tensor ones = call<"ones">(b.session, half, self.dtype(), Value(), self.device());
    const Tensor slope = call<"glu_backward">(b.session, ones, self, dim);
    both = b.grad() * slope;
  }
  const Tensor second = narrow(both, dim, size, size);
  return narrow(both, dim, 0, size) + second;
}

Tensor glu_of_self(Backward& b) {
  const int64_t dim = b.integer("dim"), size = b("self").size(dim) / 2;
  const Tensor &grad = b.grad(), &outer = b("grad_output");
  const Tensor first = narrow(b("self"), dim, 0, size);
  const Tensor gate = sigmoid(narrow(b("self"), dim, size, size));
  const Tensor rest = 1 - gate;
  const Tensor slope = gate * rest;
  const Tensor grad_first = narrow(grad, dim, 0, size), grad_second = narrow(grad, dim, size, size);
  const Tensor scaled_first = grad_second * first;
  const Tensor of_first = grad_second * outer * slope;
  const Tensor fall = gate * slope;
  const Tensor bend = slope * rest - fall;
  const Tensor across = grad_first * outer * slope;
  const Tensor of_second = scaled_first * outer * bend + across;
  return call<"cat">(b.session, Value::Tensors{of_first, of_second}, dim);
}

constexpr Derivatives glu_twice() {
  return {{{"grad_output"}, {"self"}, [](Backward& b) { return glu_of_gradient(b); }},
          {{"self"}, {"grad_output", "self"}, [](Backward& b) { return glu_of_self(b); }}};
}

constexpr Op kGlu[] = {{.schema = "glu(Tensor self, int dim=-1) -> Tensor",
                        .summary = "first half · sigmoid(second half)",
                        .meta =
                            [](Call& c) {
                              const Tensor& self = c.tensor("self");
                              // The halves are views; the result has their order of dimensions.
                              const Tensor half = alias(self, half_of(c), self.strides(), self->offset);
                              elementwise(c, {&half, &half}, self.dtype());
                            },
                        .derivatives = {{{"self"},
                                         {"self"},
                                         [](Backward& b) {
                                           return call<"glu_backward">(b.session, b.grad(), b("self"),
                                                                       b["dim"]);
                                         }}},
                        .flops = elementwise_flops<2>,
                        .examples = {"f32[2,6]", "f32[4,3] 0"},
                        .facts = {.takes = "self.dim > 0, dim in self"}},
                       {.schema = "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
                        .summary = "gradient of glu",
                        .meta =
                            [](Call& c) {
                              const Tensor& self = c.tensor("self");
                              c.output(self.sizes(), self.dtype());
                            },
                        .derivatives = glu_twice(),
                        .flops = elementwise_flops<4>,
                        .examples = {"f32[2,3] f32[2,6] -1"},
                        .facts = {.takes = "self.dim > 0, dim in self"}}};

// --- rrelu

template <bool is_result>
Tensor rrelu_gradient(Backward& b) {
  return call<"rrelu_with_noise_backward">(b.session, b.grad(), b(is_result ? Name("result") : Name("self")),
                                           b("noise"), b["lower"], b["upper"], b["training"], is_result);
}

Tensor contiguous_noise(const Call& c) {
  return call<"empty_like">(c.session, c.tensor("self"), Value(), Value(), Value(), Value(),
                            MemoryFormat::contiguous);
}

// native/cuda/RreluWithNoise.cu: training works on contiguous copies; otherwise it is leaky_relu.
void rrelu_cuda(Call& c) {
  c.allocate(0);
  if (!c.boolean("training")) return;
  const Tensor self = c.contiguous(c.tensor("self")), noise = c.contiguous(c.tensor("noise"));
  const Tensor result = c.contiguous(c.result_tensor());
}

// native/Activation.cpp: noise · grad in training, else what leaky_relu does.
void rrelu_backward_meta(Call& c) {
  const Tensor& first = c.tensor(c.boolean("training") ? Name("noise") : Name("self"));
  const Tensor& grad = c.tensor("grad_output");
  elementwise(c, {&first, &grad}, result_type({&first, &grad}));
}

constexpr Derivatives rrelu_twice() {
  return {{{"grad_output"},
           {"self", "noise"},
           [](Backward& b) {
             return call<"rrelu_with_noise_backward">(b.session, b.grad(), b("self"), b("noise"), b["lower"],
                                                      b["upper"], b["training"], false);
           }},
          {{"self"}, {}, [](Backward& b) { return zeros_like(b.grad()); }}};
}

constexpr Op kRrelu[] = {
    composite_of("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
                 "training=False, Generator? generator=None) -> Tensor",
                 "leaky_relu with random slopes",
                 [](Call& c) {
                   c.result(call<"rrelu_with_noise">(c.session, c.tensor("self"), contiguous_noise(c),
                                                     c["lower"], c["upper"], c["training"], c["generator"]));
                 },
                 {"f32[2,3]"}),
    composite_of("rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
                 "training=False, Generator? generator=None) -> Tensor(a!)",
                 "self := rrelu(self)",
                 [](Call& c) {
                   c.result(call<"rrelu_with_noise_">(c.session, c.tensor("self"), contiguous_noise(c),
                                                      c["lower"], c["upper"], c["training"], c["generator"]));
                 },
                 {"f32[2,3]"}),
    {.schema = "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar "
               "upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
     .summary = "leaky_relu with the slopes in noise",
     .meta = [](Call& c) { c.output(c.tensor("self").sizes(), c.tensor("self").dtype()); },
     .host_code = {{DeviceType::cuda, rrelu_cuda}},
     .derivatives = {{{"self"}, {"noise", "self"}, [](Backward& b) { return rrelu_gradient<false>(b); }}},
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3] f32[2,3]"},
     .facts = {.random = true}},
    {.schema = "rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar "
               "upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor(a!)",
     .summary = "self := leaky_relu(self) with the slopes in noise",
     .meta = self_meta,
     .host_code = {{DeviceType::cuda, rrelu_cuda}},
     .derivatives = {{{"self"}, {"noise", "result"}, [](Backward& b) { return rrelu_gradient<true>(b); }}},
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3] f32[2,3]"},
     .facts = {.node = "RreluWithNoiseBackward1", .random = true}},
    {.schema = "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, "
               "Scalar upper, bool training, bool self_is_result) -> Tensor",
     .summary = "grad · slope",
     .meta = rrelu_backward_meta,
     .derivatives = rrelu_twice(),
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3] f32[2,3] f32[2,3] 0.1 0.3 False False"}}};

// --- log_sigmoid

Tensor log_sigmoid_of_self(Backward& b) {
  const Tensor grad = b.grad() * b("grad_output");
  const Tensor slope = sigmoid(b("self"));
  return grad * (slope - 1) * slope;
}

constexpr Derivatives log_sigmoid_twice() {
  return {
      {{"grad_output"},
       {"self", "buffer"},
       [](Backward& b) { return call<"log_sigmoid_backward">(b.session, b.grad(), b("self"), b("buffer")); }},
      {{"self"}, {"grad_output", "self"}, [](Backward& b) { return log_sigmoid_of_self(b); }}};
}

constexpr Op kLogSigmoid[] = {
    composite_of("log_sigmoid(Tensor self) -> Tensor", "ln sigmoid(self)",
                 [](Call& c) { c.result(call_all<"log_sigmoid_forward">(c.session, c.tensor("self"))[0]); },
                 {"f32[2,3]"}),
    {.schema = "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
     .summary = "ln sigmoid(self), and e^−|self| on the host, nothing on CUDA",
     .meta =
         [](Call& c) {
           const Tensor& self = c.tensor("self");
           c.output_like(self);
           if (c.on_cuda()) {
             c.output(Sizes{0}, self.dtype());
           } else {
             c.output(self.sizes(), self.dtype());
           }
         },
     .derivatives = {{{"self"},
                      {"self", "buffer"},
                      [](Backward& b) {
                        return call<"log_sigmoid_backward">(b.session, b.grad(), b("self"), b("buffer"));
                      }}},
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3]"},
     .facts = {.node = "LogSigmoidBackward0", .no_gradient_for = {"buffer"}}},
    {.schema = "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
     .summary = "grad · (1 − sigmoid(self))",
     .meta = [](Call& c) { c.output_like(c.tensor("grad_output")); },
     .derivatives = log_sigmoid_twice(),
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3] f32[2,3] f32[0]"}}};

}  // namespace

Tables gated_activation_operators() {
  static constexpr Records tables[] = {kPrelu, kGlu, kRrelu, kLogSigmoid};
  return tables;
}

}  // namespace metaprof
