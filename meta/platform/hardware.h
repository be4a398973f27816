#pragma once
// A card: what it is and how fast, from the vendor's data sheets and from what the driver reports. Nothing here
// depends on a library or on the framework, and nothing is fitted.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/units.h"

namespace metaprof {

struct Hardware {
  std::string name;   ///< "h200"
  std::string title;  ///< "NVIDIA H200", as the driver names it
  DeviceType type = DeviceType::cuda;
  int sm = 0;               ///< compute capability, 90 = 9.0
  int multiprocessors = 0;  ///< SMs
  int threads_per_multiprocessor = 2048;
  int blocks_per_multiprocessor = 0;     ///< 0: not said
  int64_t shared_memory_per_block = 0;   ///< bytes, with opt-in
  Bytes memory = {};                     ///< what the driver reports as total
  Bytes l2_cache = {};                   ///< 0: not said
  int64_t clock_khz = 0;                 ///< of the multiprocessors, at most; 0: not said
  int64_t memory_clock_khz = 0;          ///< 0: not said
  double bandwidth = 0;                  ///< bytes per second of device memory
  double flops_f32 = 0, flops_tf32 = 0;  ///< FLOPs per second, dense
  double flops_f16 = 0, flops_f64 = 0;

  bool is_cpu() const { return type == DeviceType::cpu; }
  friend bool operator==(const Hardware&, const Hardware&) = default;
};

/// The built-in hardware of this name; nothing if there is none.
const Hardware* find_hardware(std::string_view name);
/// All that is built in, the largest memory first, the CPU last.
const std::vector<Hardware>& known_hardware();
/// The built-in card whose compute capability is nearest: says what a described card leaves out.
const Hardware& nearest_hardware(const Hardware& hardware);

}  // namespace metaprof
