#pragma once
// NVIDIA's management library, which says of a device what CUDA does not: the driver's version, clocks, the power limit, and
// memory before there is a context. It comes with the driver.

#include <optional>
#include <string>

#include "core/dynamic_library.h"
#include "estimate/results/measurement.h"

namespace metaprof::cuda {

class Nvml {
 public:
  /// Nothing known where the library or the device is not there. `pci_bus_id`: as CUDA names the device.
  explicit Nvml(const std::string& pci_bus_id);

  /// Empty: not said.
  std::string driver() const;
  /// Bytes of the device in use by all processes; nothing: not said.
  std::optional<int64_t> used_memory() const;
  ClocksAndPower clocks() const;

 private:
  std::optional<DynamicLibrary> library_;
  void* device_ = nullptr;
};

}  // namespace metaprof::cuda
