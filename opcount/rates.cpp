#include "opcount/rates.h"

#include <algorithm>

namespace metaprof {
namespace {

// Of a call's first floating tensor.
DType element_type(const Trace& trace, const CallRecord& call) {
  for (uint32_t i = 0; i < uint32_t{call.inputs} + call.outputs; ++i) {
    const TensorRecord& tensor = trace.tensors[call.first_tensor + i];
    if (tensor.storage != 0 && is_floating(tensor.dtype)) return tensor.dtype;
  }
  return DType::f32;
}

}  // namespace

double Rates::flops_per_second(DType dtype) const {
  if (is_reduced_floating(dtype)) return flops_f16;
  // Dense rates of the vendor's data sheets: half the size, twice the rate (H100: fp16 989 TFLOPS, fp8 1979).
  if (is_floating(dtype) && element_size(dtype) == 1) return 2 * flops_f16;
  return dtype == DType::f64 || dtype == DType::c128 ? flops_f64 : flops_f32;
}

double Rates::flops_of(const Trace& trace, const CallRecord& call) const {
  const DType dtype = element_type(trace, call);
  if (call.kernel == Kernel::depthwise && is_reduced_floating(dtype)) return flops_f32;
  const bool by_product = tf32_products && call.kernel == Kernel::other && call.counted.count > 0;
  const bool in_tf32 = call.kernel == Kernel::cudnn ? tf32_in_cudnn : by_product;
  return dtype == DType::f32 && in_tf32 ? std::max(flops_tf32, flops_f32) : flops_per_second(dtype);
}

double Rates::measured_flops_of(const Trace& trace, const CallRecord& call) const {
  Rates measured = *this;
  measured.flops_f64 = measured_flops_f64;
  measured.flops_f32 = measured_flops_f32;
  measured.flops_f16 = measured_flops_f16;
  measured.flops_tf32 = measured_flops_tf32;
  return measured.flops_of(trace, call);
}

}  // namespace metaprof
