// Losses over elements: squared, absolute and logistic differences.

#include "meta/autograd/engine/backward.h"
#include "meta/ops/losses/family.h"
#include "meta/ops/losses/loss.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {

Tensor apply_reduction(const Tensor& elements, Reduction reduction) {
  switch (reduction) {
    case Reduction::none: return elements;
    case Reduction::mean: return mean(elements);
    case Reduction::sum: return sum(elements);
  }
  return elements;
}

void reduce_into_result(Call& c, const Tensor& elements) {
  const DType dtype = elements.dtype();
  const bool sums = reduction(c) == Reduction::sum;
  const ReductionKernel kernel = {.accumulator = accumulator_bytes(dtype),
                                  .vector = sums && element_size(dtype) == 2 ? 8 : 4};
  reduction_buffers(c, elements, reduced_dims(c, Value(), elements.dim()), c.result_tensor(), kernel);
}

namespace {

// --- Losses whose kernel is one elementwise pass, then a mean or sum.

Tensor broadcast_elements(Call& c) {
  const Tensor &self = c.tensor("self"), &target = c.tensor("target");
  const Tensor* operands[] = {&self, &target};
  const Sizes sizes = broadcast_all(c, operands);
  return c.temporary(sizes, result_strides(sizes, operands), result_type({&self, &target}));
}

void difference_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &target = c.tensor("target");
  const DType dtype = result_type({&self, &target});
  if (reduction(c) == Reduction::none) {
    elementwise(c, {&self, &target}, dtype);
  } else {
    c.output({}, dtype);
  }
}

// Structured kernels make the result in the iterator's full size and shrink it to a number afterwards: the
// block stays (recorded: loss/f32/mse_loss).
void keeps_full_block_cuda(Call& c) {
  if (reduction(c) == Reduction::none) return c.allocate(0);
  const Tensor* operands[] = {&c.tensor("self"), &c.tensor("target")};
  c.allocate(0, numel(broadcast_all(c, operands)) * element_size(c.result_tensor().dtype()));
  reduce_into_result(c, broadcast_elements(c));
}

void huber_cuda(Call& c) {
  if (reduction(c) == Reduction::none) return c.allocate(0);
  const Tensor elements = broadcast_elements(c);
  c.allocate(0);
  reduce_into_result(c, elements);
}

void gradient_of_self_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(self.sizes(), self.dtype());
}

Tensor mse_gradient(Backward& b, const Tensor& of, const Tensor& other) {
  return call<"mse_loss_backward">(b.session, b.grad(), of, other, b["reduction"]);
}
Tensor smooth_l1_gradient(Backward& b, const Tensor& of, const Tensor& other) {
  return call<"smooth_l1_loss_backward">(b.session, b.grad(), of, other, b["reduction"], b["beta"]);
}
Tensor huber_gradient(Backward& b, const Tensor& of, const Tensor& other) {
  return call<"huber_loss_backward">(b.session, b.grad(), of, other, b["reduction"], b["delta"]);
}

// The target's gradient is self's with the two exchanged.
template <Tensor (*gradient)(Backward&, const Tensor&, const Tensor&)>
constexpr Derivatives of_both() {
  return {{{"self"},
           {"self", "target"},
           [](Backward& b) -> Gradients { return {gradient(b, b("self"), b("target"))}; }},
          {{"target"}, {"self", "target"}, [](Backward& b) -> Gradients {
             return {gradient(b, b("target"), b("self"))};
           }}};
}

constexpr Op elementwise_loss(std::string_view schema, std::string_view summary, void (*kernel)(Call&),
                              Derivatives derivatives) {
  return {.schema = schema,
          .summary = summary,
          .meta = difference_meta,
          .host_code = {{DeviceType::cuda, kernel}},
          .derivatives = derivatives,
          .flops = [](const Call& c) -> FlopCount { return {.own = 3 * c.tensor("self").numel()}; },
          .examples = {"f32[2,3] f32[2,3]", "f32[2,3] f32[2,3] 0", "f32[2,3] f32[2,3] 2"},
          .facts = {.autocast = Autocast::fp32}};
}

constexpr Op loss_gradient(std::string_view schema, std::string_view summary, Derivatives derivatives,
                           std::string_view example) {
  return {.schema = schema,
          .summary = summary,
          .meta = gradient_of_self_meta,
          .derivatives = derivatives,
          .flops = elementwise_flops<3>,
          .examples = {example}};
}

// grad · grad_output, which may be a single number.
Tensor product_of_gradients(Backward& b) { return b.grad() * b("grad_output"); }

Tensor averaged(Backward& b, Tensor gradient) {
  if (reduction(b) == Reduction::mean) call<"div_.Scalar">(b.session, gradient, b.shape("self")->numel);
  return gradient;
}

Tensor mse_slope(Backward& b) { return averaged(b, 2 * product_of_gradients(b)); }

Tensor distance_below(Backward& b, Name limit) {
  const Tensor distance = abs(b("self") - b("target"));
  return lt(distance, b[limit]);
}

Tensor smooth_l1_slope(Backward& b) {
  const Tensor grad = product_of_gradients(b);
  if (b.real("beta") == 0) return zeros_of(grad, grad.sizes());
  const Tensor near = to(distance_below(b, "beta"), grad.dtype());
  return averaged(b, grad * near / b["beta"]);
}

Tensor huber_slope(Backward& b) {
  const Tensor grad = product_of_gradients(b);
  return averaged(b, grad * distance_below(b, "delta"));
}

// The gradient of a reduced loss is a number: Σ slope · grad.
template <Tensor (*slope_for)(Backward&, const Tensor& gradient)>
Tensor of_reduced_gradient(Backward& b) {
  if (reduction(b) == Reduction::none) return slope_for(b, b.grad());
  const Tensor one = call<"ones_like">(b.session, b("grad_output"));
  const Tensor slope = slope_for(b, one);
  return sum(slope * b.grad());
}

Tensor huber_backward(Backward& b, const Tensor& gradient) {
  return call<"huber_loss_backward">(b.session, gradient, b("self"), b("target"), b["reduction"], b["delta"]);
}

constexpr Derivatives mse_twice() {
  return {{{"grad_output"},
           {"self", "target"},
           [](Backward& b) {
             return call<"mse_loss_backward">(b.session, b.grad(), b("self"), b("target"), b["reduction"]);
           }},
          {{"self"}, {"grad_output", "self"}, [](Backward& b) { return mse_slope(b); }},
          {{"target"}, {"grad_output", "target"}, [](Backward& b) { return neg(mse_slope(b)); }}};
}

constexpr Derivatives smooth_l1_twice() {
  return {
      {{"grad_output"},
       {"self", "target"},
       [](Backward& b) {
         return call<"smooth_l1_loss_backward">(b.session, b.grad(), b("self"), b("target"), b["reduction"],
                                                b["beta"]);
       }},
      {{"self"}, {"grad_output", "self", "target"}, [](Backward& b) { return smooth_l1_slope(b); }},
      {{"target"}, {"grad_output", "self", "target"}, [](Backward& b) { return neg(smooth_l1_slope(b)); }}};
}

constexpr Derivatives huber_twice() {
  return {{{"grad_output"},
           {"grad_output", "self", "target"},
           [](Backward& b) { return of_reduced_gradient<huber_backward>(b); }},
          {{"self"}, {"grad_output", "self", "target"}, [](Backward& b) { return huber_slope(b); }},
          {{"target"}, {"grad_output", "self", "target"}, [](Backward& b) { return neg(huber_slope(b)); }}};
}

constexpr Op kDifferenceLosses[] = {
    elementwise_loss("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", "(self − target)²",
                     keeps_full_block_cuda, of_both<mse_gradient>()),
    elementwise_loss("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
                     "|self − target|, squared near 0", keeps_full_block_cuda, of_both<smooth_l1_gradient>()),
    elementwise_loss("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
                     "squared near 0, linear beyond delta", huber_cuda, of_both<huber_gradient>()),
    loss_gradient(
        "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
        "2 · grad · (self − target)", mse_twice(), "f32[] f32[2,3] f32[2,3] 1"),
    loss_gradient("smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, "
                  "float beta) -> Tensor",
                  "grad · the slope", smooth_l1_twice(), "f32[] f32[2,3] f32[2,3] 1 1.0"),
    loss_gradient("huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float "
                  "delta) -> Tensor",
                  "grad · the slope", huber_twice(), "f32[] f32[2,3] f32[2,3] 1 1.0"),
    composite_loss("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", "|self − target|",
                   [](Call& c) {
                     const Tensor difference = sub(c.tensor("self"), c.tensor("target"));
                     const Tensor elements = abs(difference);
                     c.result(apply_reduction(elements, reduction(c)));
                   },
                   {"f32[2,3] f32[2,3]", "f32[2,3] f32[2,3] 0"})};

// --- soft margin: log(1 + exp(−target · self))

void soft_margin_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  if (reduction(c) == Reduction::none) return c.allocate(0);
  c.allocate(0, self.numel() * element_size(self.dtype()));
  const Tensor total = c.temporary({}, self.dtype());
  reduce_into_result(c, self);
}

// native/Loss.cpp: target · … comes first, so it decides the order of dimensions.
void soft_margin_backward_meta(Call& c) {
  elementwise(c, {&c.tensor("target"), &c.tensor("self")}, c.tensor("self").dtype());
}

void soft_margin_backward_cuda(Call& c) {
  Tensor power;
  {
    const Tensor negative = neg(c.tensor("target"));
    const Tensor product = mul(negative, c.tensor("self"));
    power = exp(product);
  }
  c.allocate(0);
}

Tensor soft_margin_slope(Backward& b) {
  const Tensor grad = product_of_gradients(b);
  Tensor z;
  {
    const Tensor negative = neg(b("target"));
    z = exp(b("self") * negative);
  }
  const Tensor more = z + 1;
  const Tensor square = more * more;
  const Tensor target_square = b("target") * b("target");
  return averaged(b, grad * target_square * z / square);
}

Tensor soft_margin_backward(Backward& b, const Tensor& gradient) {
  return call<"soft_margin_loss_backward">(b.session, gradient, b("self"), b("target"), b["reduction"]);
}

constexpr Derivatives soft_margin_twice() {
  return {{{"grad_output"},
           {"grad_output", "self", "target"},
           [](Backward& b) { return of_reduced_gradient<soft_margin_backward>(b); }},
          {{"self"}, {"grad_output", "self", "target"}, [](Backward& b) { return soft_margin_slope(b); }}};
}

constexpr Op kSoftMargin[] = {
    {.schema = "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
     .summary = "log(1 + exp(−target · self))",
     .meta = difference_meta,
     .host_code = {{DeviceType::cuda, soft_margin_cuda}},
     .derivatives = {{{"self"},
                      {"self", "target"},
                      [](Backward& b) {
                        return call<"soft_margin_loss_backward">(b.session, b.grad(), b("self"), b("target"),
                                                                 b["reduction"]);
                      }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 4 * c.tensor("self").numel()}; },
     .examples = {"f32[2,3] f32[2,3]", "f32[2,3] f32[2,3] 0"},
     .facts = {.autocast = Autocast::fp32}},
    {.schema =
         "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
     .summary = "−target · grad / (1 + exp(target · self))",
     .meta = soft_margin_backward_meta,
     .host_code = {{DeviceType::cuda, soft_margin_backward_cuda}},
     .derivatives = soft_margin_twice(),
     .flops = elementwise_flops<5>,
     .examples = {"f32[] f32[2,3] f32[2,3] 1"}}};

// --- binary cross entropy

void bce_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &target = c.tensor("target");
  if (self.sizes() != target.sizes())
    c.error("self and target must have the same sizes; got " + describe(self) + " and " + describe(target));
  if (reduction(c) == Reduction::none) {
    c.output_like(self);
  } else {
    c.output({}, self.dtype());
  }
}

// aten/src/ATen/native/cuda/Loss.cu: elements are written to the result's block, which then is the number's.
void bce_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  if (reduction(c) == Reduction::none) return c.allocate(0);
  c.allocate(0, self.numel() * element_size(self.dtype()));
  const Tensor total = c.temporary({}, self.dtype());
  reduce_into_result(c, self);
}

void bce_backward_meta(Call& c) { c.output_like(c.tensor("self")); }

// FunctionsManual.cpp, binary_cross_entropy_target_backward: log(1 − self) − log(self) = −logit(self).
Gradients bce_target_backward(Backward& b) {
  const Tensor difference = call<"logit">(b.session, b("self"));
  call<"neg_">(b.session, difference);
  call<"mul_.Tensor">(b.session, difference, b.grad());
  if (b("weight").defined()) call<"mul_.Tensor">(b.session, difference, b("weight"));
  if (reduction(b) == Reduction::mean) call<"div_.Scalar">(b.session, difference, numel(b.sizes("target")));
  return {difference};
}

constexpr double kEpsilon = 1e-12;

Tensor weighted(Backward& b, Tensor gradient) {
  if (b("weight").defined()) call<"mul_.Tensor">(b.session, gradient, b("weight"));
  return gradient;
}

Tensor entropy_of_gradient(Backward& b) {
  const Tensor &self = b("self"), &target = b("target");
  Tensor slope;
  {
    const Tensor rest = 1 - self + kEpsilon;
    const Tensor bounds = (self + kEpsilon) * rest;
    slope = (self - target) / bounds;
  }
  call<"mul_.Tensor">(b.session, slope, b.grad());
  slope = weighted(b, slope);
  return reduction(b) == Reduction::mean ? slope / self.numel() : slope;
}

Tensor entropy_of_self(Backward& b) {
  const Tensor &self = b("self"), &target = b("target");
  const Tensor more = self + kEpsilon;
  const Tensor rest = 1 - self + kEpsilon;
  Tensor slope;
  {
    const Tensor rest_square = pow(rest, 2);
    const Tensor bounds = pow(more, 2) * rest_square;
    const Tensor mixed = 2 * self * target;
    const Tensor above = self * self - mixed + target;
    slope = above / bounds;
  }
  {
    const Tensor grad = product_of_gradients(b);
    call<"mul_.Tensor">(b.session, slope, grad);
  }
  slope = weighted(b, slope);
  return reduction(b) == Reduction::mean ? slope / self.numel() : slope;
}

Tensor entropy_of_target(Backward& b) {
  const Tensor& self = b("self");
  Tensor slope = neg(b.grad()) * b("grad_output");
  slope = weighted(b, slope);
  {
    const Tensor bounds = 1 - self;
    call<"mul_.Tensor">(b.session, bounds, self);
    call<"clamp_min_">(b.session, bounds, kEpsilon);
    call<"div_.Tensor">(b.session, slope, bounds);
  }
  if (reduction(b) == Reduction::mean) call<"div_.Scalar">(b.session, slope, b("target").numel());
  return slope;
}

constexpr Derivatives binary_cross_entropy_twice() {
  return {
      {{"grad_output"}, {"self", "target", "weight"}, [](Backward& b) { return entropy_of_gradient(b); }},
      {{"self"}, {"grad_output", "self", "target", "weight"}, [](Backward& b) { return entropy_of_self(b); }},
      {{"target"}, {"grad_output", "self", "target", "weight"}, [](Backward& b) {
         return entropy_of_target(b);
       }}};
}

constexpr Op kBce[] = {
    {.schema =
         "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
     .summary = "−target · log self − (1 − target) · log(1 − self)",
     .meta = bce_meta,
     .host_code = {{DeviceType::cuda, bce_cuda}},
     .derivatives = {{{"self"},
                      {"self", "target", "weight"},
                      [](Backward& b) {
                        return call<"binary_cross_entropy_backward">(
                            b.session, b.grad(), b("self"), b("target"), b("weight"), b["reduction"]);
                      }},
                     {{"target"}, {"self", "target", "weight"}, bce_target_backward}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 6 * c.tensor("self").numel()}; },
     .examples = {"f32[2,3] f32[2,3]", "f32[2,3] f32[2,3] f32[2,3] 0"},
     .facts = {.autocast = Autocast::banned}},
    {.schema = "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? "
               "weight=None, int reduction=1) -> Tensor",
     .summary = "grad · (self − target) / (self · (1 − self))",
     .meta = bce_backward_meta,
     .derivatives = binary_cross_entropy_twice(),
     .flops = elementwise_flops<5>,
     .examples = {"f32[] f32[2,3] f32[2,3] None 1"}}};

// --- binary cross entropy of logits

void bce_logits_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &target = c.tensor("target");
  const DType dtype = result_type({&self, &target});
  if (reduction(c) == Reduction::none) {
    c.output_like(target, dtype);
  } else {
    c.output({}, dtype);
  }
}

void bce_logits_kernel(Call& c) {
  const Tensor &self = c.tensor("self"), &target = c.tensor("target"), &pos_weight = c.tensor("pos_weight");
  const DType dtype = c.result_tensor().dtype();
  const Tensor log_sigmoid =
      c.temporary(self.sizes(), dense_strides_like(self.sizes(), self.strides()), self.dtype());
  if (pos_weight.defined()) {
    Tensor log_weight;
    {
      const Tensor less_one = call<"sub.Scalar">(c.session, pos_weight, 1);
      log_weight = mul(less_one, target);
    }
  }
  if (reduction(c) == Reduction::none) return c.allocate(0);
  const Tensor elements =
      c.temporary(target.sizes(), dense_strides_like(target.sizes(), target.strides()), dtype);
  c.allocate(0);
  reduce_into_result(c, elements);
}

// Into the tensor itself, or while a second derivative is recorded into a new one.
template <FixedString in_place, FixedString out_of_place>
void change(Session& s, Tensor& tensor, const Tensor& by) {
  if (s.modes.grad) {
    tensor = call<out_of_place>(s, tensor, by);
  } else {
    call<in_place>(s, tensor, by);
  }
}

// FunctionsManual.cpp, binary_cross_entropy_with_logits_backward.
Gradients bce_logits_backward(Backward& b) {
  Session& s = b.session;
  const Tensor &self = b("self"), &target = b("target"), &weight = b("weight"), &pos_weight = b("pos_weight");
  Tensor gradient;
  if (pos_weight.defined()) {
    const Tensor weighted = mul(pos_weight, target);
    gradient = call<"add.Scalar">(s, weighted, 1);
    change<"sub_.Tensor", "sub.Tensor">(s, gradient, target);
    const Tensor sigmoid = call<"sigmoid">(s, self);
    change<"mul_.Tensor", "mul.Tensor">(s, gradient, sigmoid);
    change<"sub_.Tensor", "sub.Tensor">(s, gradient, weighted);
  } else {
    gradient = call<"sigmoid">(s, self);
    change<"sub_.Tensor", "sub.Tensor">(s, gradient, target);
  }
  change<"mul_.Tensor", "mul.Tensor">(s, gradient, b.grad());
  if (weight.defined()) change<"mul_.Tensor", "mul.Tensor">(s, gradient, weight);
  if (reduction(b) == Reduction::mean) call<"div_.Scalar">(s, gradient, self.numel());
  return {gradient};
}

Gradients bce_logits_target_backward(Backward& b) {
  Session& s = b.session;
  const Tensor &self = b("self"), &weight = b("weight"), &pos_weight = b("pos_weight");
  Tensor gradient;
  if (pos_weight.defined()) {
    const Tensor negative = neg(self);
    gradient = call<"log_sigmoid">(s, negative);
    const Tensor positive = call<"log_sigmoid">(s, self);
    call<"mul_.Tensor">(s, positive, pos_weight);
    call<"sub_.Tensor">(s, gradient, positive);
    call<"mul_.Tensor">(s, gradient, b.grad());
  } else {
    const Tensor negative = neg(self);
    gradient = mul(negative, b.grad());
  }
  if (weight.defined()) call<"mul_.Tensor">(s, gradient, weight);
  if (reduction(b) == Reduction::mean) call<"div_.Scalar">(s, gradient, numel(b.sizes("target")));
  return {gradient};
}

constexpr Op kBceLogits[] = {
    {.schema = "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
               "pos_weight=None, int reduction=1) -> Tensor",
     .summary = "(1 − target) · self − log sigmoid(self)",
     .meta = bce_logits_meta,
     .host_code = {{DeviceType::cuda, bce_logits_kernel}},
     .derivatives = {{{"self"}, {"self", "target", "weight", "pos_weight"}, bce_logits_backward},
                     {{"target"}, {"self", "target", "weight", "pos_weight"}, bce_logits_target_backward}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 8 * c.tensor("self").numel()}; },
     .examples = {"f32[2,3] f32[2,3]", "f32[2,3] f32[2,3] f32[2,3] f32[3] 0"},
     .facts = {.autocast = Autocast::fp32}}};

}  // namespace

Tables loss_operators() {
  static constexpr Records tables[] = {kDifferenceLosses, kSoftMargin, kBce, kBceLogits};
  return tables;
}

}  // namespace metaprof
