// Optimizer steps of bitsandbytes (0.48, bitsandbytes/_ops.py): one kernel for each parameter, which writes in place
// and asks for no memory.

#include "meta/ops/optimizers/family.h"
#include "meta/session/call.h"

namespace metaprof {
namespace {

// As _fused_adamw_: 12 for each element. What is done to read and write the 8 bits is none of them.
FlopCount step_flops(const Call& c) { return {.own = 12 * c.tensor("p").numel()}; }

constexpr Op step_over_one(std::string_view schema, std::string_view summary, std::string_view example) {
  return {.schema = schema,
          .summary = summary,
          .meta = [](Call&) {},
          .derivatives = not_differentiable,
          .flops = step_flops,
          .examples = {example}};
}

constexpr Op kEightBitOptimizer[] = {
    step_over_one(
        "bitsandbytes::optimizer_update_8bit_blockwise(str optimizer_name, Tensor(a!) g, Tensor(b!) p, "
        "Tensor(c!) state1, Tensor(d!)? state2, float beta1, float beta2, float beta3, float alpha, float "
        "eps, int step, float lr, Tensor qmap1, Tensor? qmap2, Tensor(e!) absmax1, Tensor(f!)? absmax2, "
        "float weight_decay, float gnorm_scale, bool skip_zeros=False) -> ()",
        "a step whose state is kept in 8 bits, with a scale for each 256 elements",
        "\"adam\" f32[512] f32[512] u8[512] u8[512] 0.9 0.99 0.0 0.0 0.1 1 0.1 f32[256] f32[256] f32[2] "
        "f32[2] 0.0 1.0"),
    step_over_one("bitsandbytes::optimizer_update_32bit(str optimizer_name, Tensor(a!) g, Tensor(b!) p, "
                  "Tensor(c!) state1, Tensor(d!)? state2, Tensor(e!)? unorm_vec, float max_unorm, float "
                  "param_norm, float beta1, float beta2, float beta3, float alpha, float eps, float "
                  "weight_decay, int step, float lr, float gnorm_scale, bool skip_zeros=False) -> ()",
                  "the same with state in fp32, for parameters of less than 4096 elements",
                  "\"adam\" f32[2] f32[2] f32[2] f32[2] None 0.0 0.0 0.9 0.99 0.0 0.0 0.1 0.0 1 0.1 1.0")};

}  // namespace

Tables eight_bit_optimizer_operators() {
  static constexpr Records tables[] = {kEightBitOptimizer};
  return tables;
}

}  // namespace metaprof
