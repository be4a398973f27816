#pragma once
// Where a tensor lives. `cuda` is a tag here: nothing is computed, but dispatch, kernels and reports
// believe it.

#include <cstdint>
#include <string>

namespace metaprof {

enum class DeviceType : int8_t { cpu = 0, cuda = 1 };
inline constexpr int kDeviceTypes = 2;

struct Device {
  DeviceType type = DeviceType::cpu;
  int8_t index = 0;

  friend bool operator==(Device, Device) = default;
  bool is_cuda() const { return type == DeviceType::cuda; }
  bool is_cpu() const { return type == DeviceType::cpu; }
};

inline constexpr Device kHost{DeviceType::cpu, 0};
inline constexpr Device kFirstGpu{DeviceType::cuda, 0};

inline std::string to_string(Device device) {
  return device.is_cpu() ? "cpu" : "cuda:" + std::to_string(int{device.index});
}

/// A queue of work on a device. Id 0 is the device's default stream.
struct Stream {
  Device device;
  uint16_t id = 0;
  friend bool operator==(Stream, Stream) = default;
};

}  // namespace metaprof
