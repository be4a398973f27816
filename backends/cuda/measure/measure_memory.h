#pragma once
// What a process takes of a device's memory beside what it asks for.

#include <memory>
#include <vector>

#include "backends/cuda/convolutions.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/products.h"
#include "estimate/results/device/measurement.h"

namespace metaprof::cuda {

inline constexpr int64_t kMebibyte = int64_t{1} << 20;

/// A process's means to compute, which take memory when they are made.
struct DeviceInUse {
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<Products> products;
  std::unique_ptr<Convolutions> convolutions;  ///< null: cuDNN is not there
};

/// Makes them one by one, and writes what each took, the libraries' versions and the granularities. `free_before`: bytes that
/// were free before CUDA was asked for anything; nothing: not known.
DeviceInUse measure_memory(int ordinal, std::optional<int64_t> free_before, DeviceMeasurement& out);

}  // namespace metaprof::cuda
