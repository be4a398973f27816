// Fused optimizer steps and loss scaling: one kernel over lists of tensors that writes them in place and asks
// for no memory (aten/src/ATen/native/cuda/FusedAdamKernel.cu, FusedSgdKernel.cu, AmpKernels.cu).

#include "meta/ops/optimizers/family.h"
#include "meta/session/call.h"

namespace metaprof {
namespace {

// `per_element` FLOPs for each element of the first list.
template <int per_element>
FlopCount update_flops(const Call& c) {
  int64_t count = 0;
  for (const Tensor& tensor : c.tensors("self")) count += tensor.numel();
  return {.own = per_element * count};
}

constexpr Op step(std::string_view schema, std::string_view summary, FlopsRule flops,
                  std::string_view example) {
  return {.schema = schema,
          .summary = summary,
          .meta = [](Call&) {},
          .derivatives = not_differentiable,
          .flops = flops,
          .examples = {example}};
}

constexpr std::string_view adam_example =
    "(f32[2]) (f32[2]) (f32[2]) (f32[2]) () (f32[]) 0.1 0.9 0.99 0.0 0.1 False False";

constexpr Op kFusedOptimizer[] = {
    step("_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] "
         "exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float "
         "beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, "
         "Tensor? found_inf=None) -> ()",
         "a step of Adam", update_flops<12>, adam_example),
    step("_fused_adamw_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] "
         "exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float "
         "beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, "
         "Tensor? found_inf=None) -> ()",
         "a step of AdamW", update_flops<12>, adam_example),
    step("_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float "
         "weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, bool "
         "is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
         "a step of SGD", update_flops<4>, "(f32[2]) (f32[2]) () 0.0 0.0 0.1 0.0 False False False"),
    step("_fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] "
         "state_steps, *, float lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? "
         "grad_scale=None, Tensor? found_inf=None) -> ()",
         "a step of Adagrad", update_flops<6>, "(f32[2]) (f32[2]) (f32[2]) (f32[]) 0.1 0.0 0.0 0.1 False"),
    step("_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor "
         "inv_scale) -> ()",
         "self · inv_scale; found_inf := 1 if an element is not finite", update_flops<1>,
         "(f32[2] f32[3]) f32[] f32[]"),
    {.schema = "_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float "
               "scale_growth_factor, float scale_backoff_factor, int growth_interval) -> Tensor(a!)",
     .summary = "a larger scale after many good steps, a smaller one after an overflow",
     .meta = [](Call& c) { c.result(c.arguments[0]); },
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[] i32[] f32[] 2.0 0.5 2000"}}};

}  // namespace

Tables fused_optimizer_operators() {
  static constexpr Records tables[] = {kFusedOptimizer};
  return tables;
}

}  // namespace metaprof
