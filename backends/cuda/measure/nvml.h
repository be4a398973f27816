#pragma once
// NVIDIA's management library, which says of a device what CUDA does not: the driver's version, clocks, the power limit, and
// memory before there is a context. It comes with the driver.

#include <optional>
#include <string>

#include "core/dynamic_library.h"
#include "estimate/results/device/measurement.h"

namespace metaprof::cuda {

class Nvml {
 public:
  /// Nothing is known where the library or the device is not there. `pci_bus_id`: as CUDA names the device.
  explicit Nvml(const std::string& pci_bus_id);
  /// The machine's only device, of which CUDA need not have been asked; nothing is known where there are several.
  Nvml();

  /// Empty: not said.
  std::string driver() const;
  /// Bytes of the device that no process has in use; nothing: not said.
  std::optional<int64_t> free_memory() const;
  ClocksAndPower clocks() const;

 private:
  std::optional<DynamicLibrary> library_;
  void* device_ = nullptr;
};

}  // namespace metaprof::cuda
