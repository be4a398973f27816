// Batch normalisation under the names that decomposed programs use: the same calls with other signatures.

#include "meta/autograd/engine/backward.h"
#include "meta/ops/normalization/batch_norm.h"
#include "meta/ops/normalization/family.h"
#include "meta/ops/normalization/takes.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

Gradients native_gradients(Backward& b, const Tensor& mean, const Tensor& variance, bool train) {
  Results gradients =
      call_all<"native_batch_norm_backward">(b.session, b.grad(), b("input"), b("weight"), mean, variance,
                                             b("result1"), b("result2"), train, b["eps"], wanted(b));
  return {gradients[0], gradients[1], gradients[2]};
}

constexpr Derivatives kLegitDerivatives{
    {{"input", "weight", "bias"},
     {"input", "running_mean", "running_var", "weight", "result1", "result2"},
     [](Backward& b) -> Gradients {
       return native_gradients(b, b("running_mean"), b("running_var"), b.boolean("training"));
     }}};

void legit_meta(Call& c) { native_batch_norm_results(c, c.boolean("training")); }
void legit_cuda(Call& c) { native_batch_norm_memory(c, c.boolean("training")); }

// The running statistics come back as copies, made first.
void functional_meta(Call& c) {
  native_batch_norm_results(c, c.boolean("training"));
  c.output_like(c.tensor("running_mean"));
  c.output_like(c.tensor("running_var"));
}
void functional_cuda(Call& c) {
  c.allocate(3);
  c.allocate(4);
  native_batch_norm_memory(c, c.boolean("training"));
}

constexpr Op kLegit[] = {
    {.schema =
         "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
         "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     .summary = "native_batch_norm that says that it writes the running statistics",
     .meta = legit_meta,
     .host_code = {{DeviceType::cuda, legit_cuda}},
     .derivatives = kLegitDerivatives,
     .flops = elementwise_flops<8>,
     .examples = {"f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] True 0.1 1e-5"},
     .facts = {.takes = kTakenByBatchNorm, .no_gradient_for = {"result1", "result2"}}},
    {.schema = "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, "
               "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     .summary = "native_batch_norm without running statistics",
     .meta = legit_meta,
     .host_code = {{DeviceType::cuda, legit_cuda}},
     .derivatives = {{{"input", "weight", "bias"},
                      {"input", "weight", "result1", "result2"},
                      [](Backward& b) { return native_gradients(b, {}, {}, b.boolean("training")); }}},
     .flops = elementwise_flops<8>,
     .examples = {"f32[2,3,4,4] f32[3] f32[3] True 0.1 1e-5"},
     .facts = {.takes = kTakenByBatchNorm,
               .node = "NativeBatchNormLegitBackward1",
               .no_gradient_for = {"result1", "result2"}}},
    {.schema = "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
               "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     .summary = "native_batch_norm by the running statistics",
     .meta = [](Call& c) { native_batch_norm_results(c, false); },
     .host_code = {{DeviceType::cuda, [](Call& c) { native_batch_norm_memory(c, false); }}},
     .derivatives = {{{"input", "weight", "bias"},
                      {"input", "running_mean", "running_var", "weight", "result1", "result2"},
                      [](Backward& b) -> Gradients {
                        return native_gradients(b, b("running_mean"), b("running_var"), false);
                      }}},
     .flops = elementwise_flops<4>,
     .examples = {"f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] 0.1 1e-5"},
     .facts = {.takes = kTakenWithoutStatistics, .no_gradient_for = {"result1", "result2"}}},
    {.schema = "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
               "running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, "
               "Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
     .summary = "native_batch_norm that returns new running statistics",
     .meta = functional_meta,
     .host_code = {{DeviceType::cuda, functional_cuda}},
     .derivatives = kLegitDerivatives,
     .flops = elementwise_flops<8>,
     .examples = {"f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] True 0.1 1e-5"},
     .facts = {.takes = kTakenByBatchNorm,
               .no_gradient_for = {"result1", "result2", "running_mean_out", "running_var_out"}}}};

// --- One operator for both libraries (Normalization.cpp, _batch_norm_with_update, _new_batch_norm_backward).

template <bool train>
void either_meta(Call& c) {
  if (c.given("bias") && batch_norm_uses_cudnn(c, train, c.real("eps")))
    return cudnn_batch_norm_results(c, train);
  native_batch_norm_results(c, train);
  c.output(Sizes{0}, DType::u8);
}

template <bool train>
void either_cuda(Call& c) {
  if (c.given("bias") && batch_norm_uses_cudnn(c, train, c.real("eps"))) return c.allocate_all();
  native_batch_norm_memory(c, train);
  c.allocate(3);
}

template <bool update>
Gradients either_gradients(Backward& b) {
  Results gradients = call_all<"batch_norm_backward">(
      b.session, b.grad(), b("input"), b("weight"), b("running_mean"), b("running_var"), b("result1"),
      b("result2"), update, b["eps"], wanted(b), b("result3"));
  return {gradients[0], gradients[1], gradients[2]};
}

void backward_meta(Call& c) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight");
  if (!batch_norm_uses_cudnn(c, true, c.real("eps")))
    return native_batch_norm_backward_results(c, c.boolean("update"));
  c.output(input.sizes(), strides_in(suggested_format(input), input.sizes()), input.dtype());
  c.output(weight.sizes(), weight.dtype());
  c.output(weight.sizes(), weight.dtype());
}

void backward_cuda(Call& c) {
  const Tensor& input = c.tensor("input");
  if (!batch_norm_uses_cudnn(c, true, c.real("eps")))
    return native_batch_norm_backward_memory(c, c.boolean("update"));
  const Tensor grad = c.contiguous(c.tensor("grad_out"), suggested_format(input));
  c.allocate_all();
}

template <bool train>
constexpr Op either(std::string_view schema) {
  return {
      .schema = schema,
      .summary = "batch_norm by whichever library takes it: output, mean, deviation, reserve",
      .meta = either_meta<train>,
      .host_code = {{DeviceType::cuda, either_cuda<train>}},
      .derivatives = {{{"input", "weight", "bias"},
                       {"input", "running_mean", "running_var", "weight", "result1", "result2", "result3"},
                       either_gradients<train>}},
      .flops = elementwise_flops < train ? 8 : 4 >,
      .examples = {"f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] 0.1 1e-5"},
      .facts = {.takes = train ? kTakenByStatistics : kTakenWithoutStatistics,
                .no_gradient_for = {"result1", "result2", "result3"}}};
}

Gradients gradients_twice(Backward& b) {
  return batch_norm_rows(b, {.sigma = "save_var", .train = "update"});
}

constexpr Op kEither[] = {
    either<true>(
        "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
        "Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)"),
    either<false>("_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
                  "Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)"),
    {.schema = "batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, "
               "Tensor? running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] "
               "output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)",
     .summary = "gradients of batch_norm by whichever library takes it",
     .meta = backward_meta,
     .host_code = {{DeviceType::cuda, backward_cuda}},
     .derivatives = {{{"input", "weight", "grad_out"},
                      {"input", "weight", "grad_out", "running_mean", "running_var", "save_mean", "save_var"},
                      gradients_twice}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 13 * c.tensor("input").numel()}; },
     .examples =
         {"f32[2,3,4,4] f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] f32[3] True 1e-5 (True True True) u8[0]"},
     .facts = {.takes = kTakenByEitherBackward}}};

}  // namespace

Tables batch_norm_variants() {
  static constexpr Records tables[] = {kLegit, kEither};
  return tables;
}

}  // namespace metaprof
