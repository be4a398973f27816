// Batch and instance normalisation.

#include "meta/ops/normalization/batch_norm.h"

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/normalization/family.h"
#include "meta/ops/normalization/normalization_gradients.h"
#include "meta/ops/normalization/takes.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {

// aten/src/ATen/native/Normalization.cpp, _select_batch_norm_backend, 2.11.
bool batch_norm_uses_cudnn(const Call& c, bool training, double epsilon) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight");
  if (!input.is_cuda() || !weight.defined()) return false;
  if (input.dtype() == DType::bf16 || weight.dtype() == DType::bf16) return false;
  if (input.dtype() == DType::f16 && weight.dtype() != DType::f32) return false;
  const bool mean = c.given("running_mean"), variance = c.given("running_var");
  if (!(mean && variance) && !(!mean && !variance && training)) return false;
  constexpr double least_epsilon = 1e-5;  // CUDNN_BN_MIN_EPSILON as the framework states it
  return input.dim() >= 3 && input.size(0) <= (training ? 880801 : 65535) && epsilon >= least_epsilon &&
         input.numel() < INT32_MAX;
}

namespace {

bool has(const Call& c, Name name) { return c.op.schema.find(name.hash) >= 0 && c.given(name); }

void check_input(const Call& c, const Tensor& input) {
  for (Name name : {Name("weight"), Name("bias"), Name("running_mean"), Name("running_var")})
    if (has(c, name) && c.tensor(name).numel() != input.size(1))
      c.error(fmt::format("'{}' should have {} elements, one per channel of {}; got {}", name.text,
                          input.size(1), describe(input), describe(c.tensor(name))));
}

// An empty input is scaled as a whole, so that its gradient is connected.
Tensor empty_normalised(Call& c) {
  Tensor out = clone(c.tensor("input"));
  if (c.given("weight")) out = mul(out, call<"select.int">(c.session, c["weight"], 0, 0));
  if (c.given("bias")) out = add(out, call<"select.int">(c.session, c["bias"], 0, 0));
  return out;
}

void batch_norm_body(Call& c) {
  const Tensor& input = c.tensor("input");
  if (input.numel() == 0) return c.result(empty_normalised(c));
  check_input(c, input);
  Results all = call_all<"_batch_norm_impl_index">(c.session, input, c["weight"], c["bias"],
                                                   c["running_mean"], c["running_var"], c["training"],
                                                   c["momentum"], c["eps"], c["cudnn_enabled"]);
  c.result(all[0]);
}

Tensor contiguous_or_none(const Tensor& t) { return t.defined() ? contiguous(t) : t; }

void impl_index_body(Call& c) {
  const Tensor& input = c.tensor("input");
  check_input(c, input);
  const DType accumulated = accumulate_type(input.dtype());
  if (input.numel() == 0) {
    const Tensor out = empty_normalised(c);
    const Sizes channels{input.size(1)};
    c.result(out);
    c.result(c.session.empty(channels, accumulated, input.device()));
    c.result(c.session.empty(channels, accumulated, input.device()));
    c.result(c.session.empty(Sizes{0}, DType::u8, input.device()));
    return c.result(Value(0));
  }
  if (c.boolean("cudnn_enabled") && c.given("bias") &&
      batch_norm_uses_cudnn(c, c.boolean("training"), c.real("eps"))) {
    const Tensor ready = contiguous(input, suggested_format(input));
    const Tensor weight = contiguous(c.tensor("weight")), bias = contiguous(c.tensor("bias"));
    const Tensor mean = contiguous_or_none(c.tensor("running_mean"));
    const Tensor variance = contiguous_or_none(c.tensor("running_var"));
    Results out = call_all<"cudnn_batch_norm">(c.session, ready, weight, bias, mean, variance, c["training"],
                                               c["momentum"], c["eps"]);
    for (size_t i = 0; i < 4; ++i) c.result(out[i]);
    return c.result(Value(1));
  }
  const Tensor reserve = c.session.empty(Sizes{0}, DType::u8, input.device());
  Results out = call_all<"native_batch_norm">(c.session, input, c["weight"], c["bias"], c["running_mean"],
                                              c["running_var"], c["training"], c["momentum"], c["eps"]);
  for (size_t i = 0; i < 3; ++i) c.result(out[i]);
  c.result(reserve);
  c.result(Value(0));
}

// cuDNN has no backward of evaluation.
void impl_index_backward_body(Call& c) {
  Results gradients =
      c.integer("impl_index") == 1 && c.boolean("train")
          ? call_all<"cudnn_batch_norm_backward">(
                c.session, c.tensor("input"), c.tensor("grad_output"), c.tensor("weight"),
                c.tensor("running_mean"), c.tensor("running_var"), c.tensor("save_mean"),
                c.tensor("save_var_transform"), c.real("eps"), c.tensor("reservedSpace"))
          : call_all<"native_batch_norm_backward">(
                c.session, c.tensor("grad_output"), c.tensor("input"), c.tensor("weight"),
                c.tensor("running_mean"), c.tensor("running_var"), c.tensor("save_mean"),
                c.tensor("save_var_transform"), c.boolean("train"), c.real("eps"), c["output_mask"]);
  for (size_t i = 0; i < 3; ++i) c.result(gradients.value(i).tensor());
}

// --- cuDNN

// Bytes that cuDNN keeps from forward to backward (cudnnGetBatchNormalizationTrainingExReserveSpaceSize): a
// closed library's answer that nobody could ask without a device. The emulated device of the recordings says
// 0, which is also the library's answer for its mode SPATIAL; the persistent mode (channels_last) may keep a
// bit mask when an activation is fused, which the framework never asks for.
int64_t reserve_bytes() { return 0; }

}  // namespace

void cudnn_batch_norm_results(Call& c, bool training) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight");
  const Sizes statistics{training ? input.size(1) : 0};
  c.output(input.sizes(), strides_in(suggested_format(input), input.sizes()), input.dtype());
  c.output(statistics, weight.dtype());
  c.output(statistics, weight.dtype());
  c.output(Sizes{training ? reserve_bytes() : 0}, DType::u8);
}

Value::Booleans wanted(const Backward& b) { return {b.wants("input"), b.wants("weight"), b.wants("bias")}; }

namespace {

void cudnn_backward_meta(Call& c) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight");
  c.output(input.sizes(), strides_in(suggested_format(input), input.sizes()), input.dtype());
  c.output(weight.sizes(), weight.dtype());
  c.output(weight.sizes(), weight.dtype());
}

void cudnn_backward_cuda(Call& c) {
  const Tensor grad = c.contiguous(c.tensor("grad_output"), suggested_format(c.tensor("input")));
  c.allocate_all();
}

Gradients native_gradients(Backward& b, const Tensor& mean, const Tensor& variance, bool training, Name eps) {
  Results gradients =
      call_all<"native_batch_norm_backward">(b.session, b.grad(), b("input"), b("weight"), mean, variance,
                                             b("result1"), b("result2"), training, b[eps], wanted(b));
  return {gradients[0], gradients[1], gradients[2]};
}

Gradients cudnn_gradients(Backward& b) {
  if (!b.boolean("training"))
    return native_gradients(b, b("running_mean"), b("running_var"), false, "epsilon");
  const Tensor grad = contiguous(b.grad(), suggested_format(*b.shape("input")));
  Results gradients = call_all<"cudnn_batch_norm_backward">(b.session, b("input"), grad, b("weight"),
                                                            b("running_mean"), b("running_var"), b("result1"),
                                                            b("result2"), b["epsilon"], b("result3"));
  return {gradients[0], gradients[1], gradients[2]};
}

// --- The framework's own

}  // namespace

// On the host the statistics have the input's dtype unless parameters are of another, and none are kept in
// eval mode.
void native_batch_norm_results(Call& c, bool training) {
  const Tensor& input = c.tensor("input");
  check_input(c, input);
  const bool cuda = input.is_cuda();
  DType statistics = accumulate_type(input.dtype());
  if (!cuda) {
    const Tensor& weight = c.tensor("weight");
    const bool mixed = weight.defined() && weight.dtype() != input.dtype();
    if (!mixed) statistics = input.dtype();
  }
  const Sizes channels{cuda || training ? input.size(1) : 0};
  if (cuda) {
    c.output_like(input);
  } else {
    c.output(input.sizes(), strides_in(suggested_format(input), input.sizes()), input.dtype());
  }
  c.output(channels, statistics);
  c.output(channels, statistics);
}

void native_batch_norm_backward_results(Call& c, bool train) {
  const Tensor &grad = c.tensor("grad_out"), &input = c.tensor("input"), &weight = c.tensor("weight");
  const auto& wants = c["output_mask"].booleans();
  const bool reduces = train || wants[1] || wants[2];
  const DType parameters = weight.defined() ? weight.dtype() : accumulate_type(input.dtype());
  if (!wants[0]) {
    c.no_output();
  } else if (!input.is_cuda()) {
    c.output(input.sizes(), strides_in(suggested_format(input), input.sizes()), input.dtype());
  } else if (batch_norm_backward_is_fused(grad, input, reduces, true)) {
    c.output(input.sizes(), input.dtype());
  } else if (!train) {
    c.output(input.sizes(), grad.dtype());
  } else if (batch_norm_layout(input) == batch_norm_layout(grad) &&
             batch_norm_layout(input) != BatchNormLayout::general) {
    c.output_like(input);
  } else {
    c.output(input.sizes(), strides_in(suggested_format(input), input.sizes()), grad.dtype());
  }
  for (size_t i : {1, 2}) {
    if (wants[i]) {
      c.output(Sizes{input.size(1)}, parameters);
    } else {
      c.no_output();
    }
  }
}

namespace {

Gradients own_gradients(Backward& b) {
  return native_gradients(b, b("running_mean"), b("running_var"), b.boolean("training"), "eps");
}

// --- Instance normalisation: every image a channel group of its own.

Tensor repeated(Call& c, const Tensor& t, int64_t times) {
  return t.defined() ? call<"repeat">(c.session, t, Sizes{times}) : t;
}

void instance_norm_body(Call& c) {
  const Tensor& input = c.tensor("input");
  const bool by_input = c.boolean("use_input_stats");
  if (!by_input && !(c.given("running_mean") && c.given("running_var")))
    c.error("needs running_mean and running_var when it does not use the input's statistics");
  const int64_t images = input.size(0), channels = input.size(1);
  Sizes shape = input.sizes();
  shape[1] = multiply(images, channels);
  shape[0] = 1;
  const Tensor weight = repeated(c, c.tensor("weight"), images), bias = repeated(c, c.tensor("bias"), images);
  const Tensor mean = repeated(c, c.tensor("running_mean"), images);
  const Tensor variance = repeated(c, c.tensor("running_var"), images);
  const Tensor row = view(contiguous(input), shape);
  const Tensor out = call<"batch_norm">(c.session, row, weight, bias, mean, variance, by_input, c["momentum"],
                                        c["eps"], c["cudnn_enabled"]);
  for (auto [running, fresh] :
       {std::pair{&c.tensor("running_mean"), &mean}, {&c.tensor("running_var"), &variance}}) {
    if (!running->defined()) continue;
    const Tensor averaged =
        call<"mean.dim">(c.session, view(*fresh, Sizes{images, channels}), Sizes{0}, false);
    copy_(call<"alias">(c.session, *running), averaged);
  }
  c.result(view(out, input.sizes()));
}

constexpr Op kComposites[] = {
    {.schema = "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
               "running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
     .summary = "(input − mean) / deviation · weight + bias, per channel",
     .meta = composite(batch_norm_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] True 0.1 1e-5 True",
                  "f32[2,3] None None f32[3] f32[3] False 0.1 1e-5 True"}},
    {.schema = "_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
               "Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> "
               "(Tensor, Tensor, Tensor, Tensor, int)",
     .summary = "batch_norm by cuDNN (index 1) or by the framework (0)",
     .meta = composite(impl_index_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] True 0.1 1e-5 True"},
     .facts = {.takes = "input.dim >= 2"}},
    {.schema =
         "_batch_norm_impl_index_backward(int impl_index, Tensor input, Tensor grad_output, Tensor? "
         "weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? "
         "save_var_transform, bool train, float eps, bool[3] output_mask, Tensor reservedSpace) -> (Tensor, "
         "Tensor, Tensor)",
     .summary = "gradients of _batch_norm_impl_index",
     .meta = composite(impl_index_backward_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples =
         {"0 f32[2,3,4,4] f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] f32[3] False 1e-5 (True True True) u8[0]"},
     .facts = {.takes = "input.dim >= 2, grad_output.dim == input.dim"}},
    {.schema = "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
               "running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
     .summary = "batch_norm of every image by itself",
     .meta = composite(instance_norm_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3,4,4] f32[3] f32[3] None None True 0.1 1e-5 True"}}};

constexpr Op kCudnn[] = {
    {.schema = "cudnn_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? "
               "running_var, bool training, float exponential_average_factor, float epsilon) -> (Tensor, "
               "Tensor, Tensor, Tensor)",
     .summary = "batch_norm by cuDNN: output, mean, inverse deviation, reserve",
     .meta = [](Call& c) { cudnn_batch_norm_results(c, c.boolean("training")); },
     .derivatives = {{{"input", "weight", "bias"},
                      {"input", "running_mean", "running_var", "weight", "result1", "result2", "result3"},
                      cudnn_gradients}},
     .flops = elementwise_flops<8>,
     .examples = {"f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] True 0.1 1e-5"},
     .facts = {.takes = kTakenByNative, .no_gradient_for = {"result1", "result2", "result3"}}},
    {.schema = "cudnn_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, Tensor? "
               "running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, float epsilon, "
               "Tensor reserveSpace) -> (Tensor, Tensor, Tensor)",
     .summary = "gradients of cudnn_batch_norm",
     .meta = cudnn_backward_meta,
     .host_code = {{DeviceType::cuda, cudnn_backward_cuda}},
     .derivatives = {{{"input", "weight", "grad_output"},
                      {"input", "weight", "grad_output", "running_mean", "running_var", "save_mean",
                       "save_var"},
                      Formula::Function([](Backward& b) {
                        return batch_norm_rows(b, {.sigma = "save_var",
                                                   .always_trains = true,
                                                   .gradient = "grad_output",
                                                   .eps = "epsilon"});
                      })}},
     .flops = elementwise_flops<13>,
     .examples = {"f32[2,3,4,4] f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] f32[3] 1e-5 u8[0]"},
     .facts = {.takes = "input.dim >= 2, input.numel > 0, grad_output.dim == input.dim"}}};

// --- batch norm (batchnorm_double_backward)

Tensor over_channels(const Tensor& tensor, int64_t dims) {
  Tensor result = tensor;
  for (int64_t d = 0; d < dims - 2; ++d) result = unsqueeze(result, d + 1);
  return result;
}

Tensor expanded(const Tensor& tensor, const Sizes& sizes) {
  return tensor.defined() ? expand(over_channels(tensor, int64_t(sizes.size())), sizes) : tensor;
}

}  // namespace

Gradients batch_norm_rows(Backward& b, const BatchNormNames& names) {
  const Tensor &input = b("input"), &outer = b(names.gradient), &weight = b("weight");
  const bool train = names.always_trains || b.boolean(names.train);
  const Tensor gamma = expanded(weight, input.sizes());
  const Tensor of_weight = expanded(weight.defined() ? b.grad(1) : Tensor(), input.sizes());
  const Tensor of_bias = expanded(weight.defined() ? b.grad(2) : Tensor(), input.sizes());
  const Tensor& of_input = b.grad(0);
  const Tensor mean = unsqueeze(over_channels(train ? b("save_mean") : b("running_mean"), input.dim()), 0);
  Tensor sigma = b(names.sigma);
  if (!train) sigma = pow(b("running_var") + b[names.eps], -0.5);
  Sizes dims{0};
  for (int64_t d = 2; d < input.dim(); ++d) dims.push_back(d);
  const Normalized n =
      normalized(input, mean, unsqueeze(over_channels(sigma, input.dim()), 0), std::move(dims), true);
  auto per_channel = [&](Tensor tensor) {
    for (size_t d = 0; d < n.dims.size(); ++d) tensor = sum(tensor, Sizes{d == 0 ? 0 : 1}, false);
    return tensor;
  };
  const Tensor g_along = total(n, outer * n.centred), g_total = total(n, outer);
  Gradients gradients{Tensor(), Tensor(), Tensor()};  // input, weight, grad_out
  if (train && of_input.defined()) {
    gradients[0] = bent_input(n, outer, of_input, g_along, g_total);
    if (gamma.defined()) gradients[0] = gamma * gradients[0];
  }
  if (of_weight.defined())
    add_to(gradients[0], of_weight * (train ? bent_by_weight(n, outer, g_total, g_along) : outer * n.sigma));
  if (weight.defined() && of_input.defined())
    gradients[1] =
        per_channel(of_input * (train ? first_backward(n, outer, ones_of(input, Sizes{})) : outer * n.sigma));
  if (of_input.defined()) {
    const Tensor scale = gamma.defined() ? gamma : ones_of(input, Sizes{});
    gradients[2] = train ? first_backward(n, of_input, scale) : of_input * (scale * n.sigma);
  }
  if (of_weight.defined()) add_to(gradients[2], of_weight * n.centred * n.sigma);
  if (of_bias.defined()) gradients[2] = gradients[2].defined() ? gradients[2] + of_bias : of_bias;
  return gradients;
}

namespace {

constexpr Derivatives batch_norm_twice() {
  return {{{"input", "weight", "grad_out"},
           {"input", "weight", "grad_out", "running_mean", "running_var", "save_mean", "save_invstd"},
           Formula::Function([](Backward& b) { return batch_norm_rows(b, {.sigma = "save_invstd"}); })}};
}

constexpr Op kOwn[] = {
    {.schema = "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
               "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     .summary = "batch_norm by the framework: output, mean, inverse deviation",
     .meta = [](Call& c) { native_batch_norm_results(c, c.boolean("training")); },
     .host_code = {{DeviceType::cuda, [](Call& c) { native_batch_norm_memory(c, c.boolean("training")); }}},
     .derivatives = {{{"input", "weight", "bias"},
                      {"input", "running_mean", "running_var", "weight", "result1", "result2"},
                      own_gradients}},
     .flops = elementwise_flops<8>,
     .examples = {"f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] True 0.1 1e-5",
                  "f32[4,3] None None None None True 0.1 1e-5"},
     .facts = {.takes = kTakenByNative, .no_gradient_for = {"result1", "result2"}}},
    {.schema = "batch_norm_stats(Tensor input, float eps) -> (Tensor, Tensor)",
     .summary = "mean and inverse deviation per channel",
     .meta =
         [](Call& c) {
           const Tensor& input = c.tensor("input");
           const DType accumulated = accumulate_type(input.dtype());
           c.output(Sizes{input.size(1)}, accumulated);
           c.output(Sizes{input.size(1)}, accumulated);
         },
     .derivatives = {},
     .flops = elementwise_flops<4>,
     .examples = {"f32[2,3,4,4] 1e-5"},
     .facts = {.takes = "input.dim >= 2"}},
    {.schema = "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? "
               "running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float "
               "eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
     .summary = "gradients of native_batch_norm",
     .meta = [](Call& c) { native_batch_norm_backward_results(c, c.boolean("train")); },
     .host_code = {{DeviceType::cuda,
                    [](Call& c) { native_batch_norm_backward_memory(c, c.boolean("train")); }}},
     .derivatives = batch_norm_twice(),
     .flops = [](const Call& c) -> FlopCount { return {.own = 13 * c.tensor("input").numel()}; },
     .examples = {"f32[2,3,4,4] f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] f32[3] True 1e-5 (True True True)"},
     .facts = {.takes = kTakenByNativeBackward}}};

}  // namespace

Tables batch_norm_operators() {
  static constexpr Records tables[] = {kComposites, kCudnn, kOwn};
  return tables;
}

}  // namespace metaprof
