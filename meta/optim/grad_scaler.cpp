#include "meta/optim/grad_scaler.h"

#include "core/error.h"
#include "meta/optim/list.h"

namespace metaprof {
namespace {

Tensor full_scalar(Session& session, double value, DType dtype) {
  return call<"full">(session, Sizes{}, value, dtype, Value(), session.device);
}

// Tensor.to(device, copy=True) on the same device.
Tensor copy_of(Session& session, const Tensor& tensor) {
  return call<"_to_copy">(session, tensor, Value(), Value(), session.device);
}

}  // namespace

Tensor GradScaler::scale(const Tensor& loss) {
  if (!scale_.defined()) {
    Scoped<Category> born_as(session_.category, Category::optimizer_state);
    scale_ = full_scalar(session_, 65536.0, DType::f32);
    growth_tracker_ = full_scalar(session_, 0, DType::i32);
  }
  return call<"mul.Tensor">(session_, loss, scale_);
}

void GradScaler::check(Optimizer& optimizer, const Tensor& inverse_scale, const Tensor& found_inf) {
  std::vector<List> groups;
  for (const Tensor& parameter : optimizer.parameters()) {
    const Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    if (gradient.dtype() == DType::f16 && !optimizer.takes_grad_scale())
      fail("a loss scaler cannot unscale fp16 gradients: keep the parameters in fp32");
    List* group = nullptr;
    for (List& g : groups)
      if (g[0].dtype() == gradient.dtype()) group = &g;
    if (!group) group = &groups.emplace_back();
    group->push_back(gradient);
  }
  // Copies for the device are made when first asked for: arguments are evaluated in order.
  Tensor inverse_copy;
  for (const List& gradients : groups) {
    if (!found_inf_.defined()) found_inf_ = copy_of(session_, found_inf);
    if (!inverse_copy.defined()) inverse_copy = copy_of(session_, inverse_scale);
    in_place<"_amp_foreach_non_finite_check_and_unscale_">(session_, gradients, found_inf_, inverse_copy);
  }
}

void GradScaler::unscale(Optimizer& optimizer) {
  if (!scale_.defined()) fail("a loss scaler must scale a loss before it can unscale gradients");
  Scoped<bool> no_grad(session_.modes.grad, false);
  Scoped<Category> born_as(session_.category, Category::temporary);
  Tensor inverse;
  {
    Tensor wide = call<"to.dtype">(session_, scale_, DType::f64);
    Tensor reciprocal = call<"reciprocal">(session_, wide);
    wide.reset();
    inverse = call<"to.dtype">(session_, reciprocal, DType::f32);
  }
  const Tensor found_inf = full_scalar(session_, 0.0, DType::f32);
  check(optimizer, inverse, found_inf);
  unscaled_ = true;
}

void GradScaler::step(Optimizer& optimizer) {
  if (!optimizer.takes_grad_scale()) {
    if (!unscaled_) unscale(optimizer);
    return optimizer.step();
  }
  Scoped<bool> no_grad(session_.modes.grad, false);
  Scoped<Category> born_as(session_.category, Category::temporary);
  // The kernels unscale: gradients are only checked, with a scale of 1.
  if (!unscaled_) {
    const Tensor one = full_scalar(session_, 1.0, DType::f32),
                 found_inf = full_scalar(session_, 0.0, DType::f32);
    check(optimizer, one, found_inf);
  }
  const Tensor overflow = call<"add.Tensor">(session_, found_inf_, 0);  // sum([…]) begins with 0
  Tensor grad_scale;
  if (!unscaled_) grad_scale = call<"mul.Tensor">(session_, scale_, 1);
  optimizer.set_grad_scale(grad_scale, overflow);
  optimizer.step();
  optimizer.set_grad_scale({}, {});
}

void GradScaler::update() {
  if (!found_inf_.defined()) fail("a loss scaler must step before it can update its scale");
  Scoped<bool> no_grad(session_.modes.grad, false);
  call<"_amp_update_scale_">(session_, scale_, growth_tracker_, found_inf_, 2.0, 0.5, 2000);
  found_inf_.reset();
  unscaled_ = false;
}

}  // namespace metaprof
