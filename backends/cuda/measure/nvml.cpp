#include "backends/cuda/measure/nvml.h"

#include "core/error.h"

namespace metaprof::cuda {
namespace {

// Numbers and signatures are those of nvml.h, the library's binary interface: CUDA's packages for Python lack the header.
using Device = void*;
constexpr int kSuccess = 0, kSmClock = 1, kMemoryClock = 2, kGpuTemperature = 0;
struct Memory {
  unsigned long long total, available, used;
};

// A number of type T that the function writes behind the arguments; nothing: it is not there or refuses.
template <class T, class... Arguments>
std::optional<T> ask(const std::optional<DynamicLibrary>& library, const char* name, Arguments... arguments) {
  if (!library) return std::nullopt;
  try {
    T value = {};
    if (library->function<int(Arguments..., T*)>(name)(arguments..., &value) == kSuccess) return value;
  } catch (const Error&) {  // an older library lacks the function
  }
  return std::nullopt;
}

std::optional<DynamicLibrary> load() {
  try {
    DynamicLibrary library("libnvidia-ml.so.1");
    if (library.function<int()>("nvmlInit_v2")() == kSuccess) return library;
  } catch (const Error&) {  // no driver, or one without it
  }
  return std::nullopt;
}

}  // namespace

Nvml::Nvml(const std::string& pci_bus_id) : library_(load()) {
  device_ = ask<Device>(library_, "nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str()).value_or(nullptr);
  if (!device_) library_.reset();
}

Nvml::Nvml() : library_(load()) {
  if (ask<unsigned>(library_, "nvmlDeviceGetCount_v2") == 1u)
    device_ = ask<Device>(library_, "nvmlDeviceGetHandleByIndex_v2", 0u).value_or(nullptr);
  if (!device_) library_.reset();
}

std::string Nvml::driver() const {
  char text[80] = {};
  if (!library_) return {};
  const int status =
      library_->function<int(char*, unsigned)>("nvmlSystemGetDriverVersion")(text, sizeof text);
  return status == kSuccess ? text : "";
}

std::optional<int64_t> Nvml::free_memory() const {
  const auto memory = ask<Memory>(library_, "nvmlDeviceGetMemoryInfo", device_);
  return memory ? std::optional(static_cast<int64_t>(memory->available)) : std::nullopt;
}

ClocksAndPower Nvml::clocks() const {
  ClocksAndPower out;
  const auto number = [&](std::optional<int64_t>& field, const char* name, int which) {
    if (const auto value = ask<unsigned>(library_, name, device_, which)) field = *value;
  };
  number(out.sm_mhz_most, "nvmlDeviceGetMaxClockInfo", kSmClock);
  number(out.memory_mhz_most, "nvmlDeviceGetMaxClockInfo", kMemoryClock);
  number(out.sm_mhz, "nvmlDeviceGetClockInfo", kSmClock);
  number(out.memory_mhz, "nvmlDeviceGetClockInfo", kMemoryClock);
  number(out.celsius, "nvmlDeviceGetTemperature", kGpuTemperature);
  if (const auto milliwatts = ask<unsigned>(library_, "nvmlDeviceGetEnforcedPowerLimit", device_))
    out.power_limit_watts = *milliwatts / 1000.0;
  return out;
}

}  // namespace metaprof::cuda
