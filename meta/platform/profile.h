#pragma once
// What the rules of kernels ask about a device. Facts of the hardware and of the library versions that
// PyTorch 2.11 (cu130) ships; nothing here is fitted.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "core/units.h"

namespace metaprof {

struct DeviceProfile {
  std::string name;   ///< "h200"
  std::string title;  ///< "NVIDIA H200"
  DeviceType type = DeviceType::cuda;
  int sm = 0;               ///< compute capability, 90 = 9.0
  int multiprocessors = 0;  ///< SMs
  int threads_per_multiprocessor = 2048;
  int64_t shared_memory_per_block = 0;  ///< bytes, with opt-in
  Bytes memory;                         ///< what the device reports as total
  int cudnn = 91900;                    ///< 9.19.0
  int cuda = 13000;
  std::optional<int64_t> cublas_workspace = {},
                         cublas_lt_workspace = {};  ///< bytes, where the environment says so
  double bandwidth = 0;                             ///< bytes per second of device memory
  double flops_f32 = 0, flops_tf32 = 0, flops_f16 = 0, flops_f64 = 0;  ///< FLOPs per second, dense

  Device device() const { return {type, 0}; }
  /// Peak arithmetic rate for an element type, for the roofline.
  double flops_per_second(DType) const;
};

/// The built-in profile of this name; nothing if there is none.
const DeviceProfile* find_device(std::string_view name);
/// All built-in profiles, the largest memory first, the CPU last.
const std::vector<DeviceProfile>& device_profiles();

}  // namespace metaprof
