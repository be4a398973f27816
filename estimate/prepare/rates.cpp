#include "estimate/prepare/rates.h"

namespace metaprof {

Rates rates_of(const Platform& platform, const std::map<std::string, std::string>& environment,
               const MeasuredRates& measured) {
  const Hardware& hardware = platform.hardware;
  // Products of f64 have matrix engines of twice the rate on A100 and H100: 19.5 beside 9.7 TFLOPS and 67 beside 34 on
  // the vendor's data sheets.
  const bool f64_engine = hardware.sm == 80 || hardware.sm == 90;
  Rates rates{.bytes_per_second = hardware.bandwidth,
              .flops_f64 = hardware.flops_f64 * (f64_engine ? 2 : 1),
              .flops_f32 = hardware.flops_f32,
              .flops_f16 = hardware.flops_f16,
              .flops_tf32 = hardware.is_cpu() ? 0 : hardware.flops_tf32,
              .multiprocessors = hardware.multiprocessors,
              .sm = hardware.sm,
              .measured_bytes_per_second = measured.bandwidth,
              .measured_flops_f64 = measured.flops_f64,
              .measured_flops_f32 = measured.flops_f32,
              .measured_flops_f16 = measured.flops_f16,
              .measured_flops_tf32 = measured.flops_tf32,
              .loads_eight_bytes = hardware.sm >= 90 && !platform.framework.loads_sixteen_bytes};
  const auto says = [&](const char* name, const char* value) {
    const auto found = environment.find(name);
    return found != environment.end() && found->second == value;
  };
  // The framework reads the first (aten/src/ATen/Context.cpp), cuBLAS and cuDNN the second, whose 0 switches TF32 off.
  if (says("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1")) rates.tf32_products = true;
  if (says("NVIDIA_TF32_OVERRIDE", "0")) rates.tf32_products = rates.tf32_in_cudnn = false;
  return rates;
}

}  // namespace metaprof
