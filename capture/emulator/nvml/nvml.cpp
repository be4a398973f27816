// NVML: what frameworks ask before and beside CUDA: how many devices, which, how much memory.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "capture/emulator/machine/devices.h"
#include "capture/emulator/machine/environment.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/memory/memory.h"
#include "capture/emulator/machine/versions.h"

using namespace metaprof::emulator;

namespace {

enum Result : int { done = 0, invalid_argument = 2, not_available = 3, not_there = 6, too_small = 7 };

// NVML numbers the devices of the machine, whatever CUDA_VISIBLE_DEVICES says. A handle is the number, less 0.
using Handle = uintptr_t;
int number_of(Handle handle) { return int(handle) - 1; }
bool is_handle(Handle handle) { return handle >= 1 && handle <= Handle(environment().device_count); }

// What this process has in use; that of others is not known.
size_t used(Handle handle) {
  for (int device = 0; device < device_count(); ++device)
    if (physical_device(device) == number_of(handle)) return memory_in_use(device);
  return 0;
}

struct Memory {
  uint64_t total, available, used;
};
struct MemoryV2 {
  unsigned version;
  uint64_t total, reserved, available, used;
};
struct Process {
  unsigned pid;
  uint64_t used;
  unsigned instances[2];
};
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device, pci_subsystem;
  char bus_id[32];
};

}  // namespace

METAPROF_CUDA Result nvmlInit() { return done; }
METAPROF_CUDA Result nvmlInit_v2() { return done; }
METAPROF_CUDA Result nvmlInitWithFlags(unsigned) { return done; }
METAPROF_CUDA Result nvmlShutdown() { return done; }
METAPROF_CUDA const char* nvmlErrorString(int result) {
  return result == done ? "Success" : result == invalid_argument ? "Invalid Argument" : "Not Supported";
}
METAPROF_CUDA Result nvmlSystemGetCudaDriverVersion(int* version) {
  *version = driver_version();
  return done;
}
METAPROF_CUDA Result nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}
METAPROF_CUDA Result nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::snprintf(text, length, "595.00");  // a driver of that CUDA release
  return done;
}
METAPROF_CUDA Result nvmlSystemGetNVMLVersion(char* text, unsigned length) {
  std::snprintf(text, length, "13.595.00");
  return done;
}

METAPROF_CUDA Result nvmlDeviceGetCount_v2(unsigned* count) {
  *count = unsigned(environment().device_count);
  return done;
}
METAPROF_CUDA Result nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }
METAPROF_CUDA Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* handle) {
  *handle = Handle(index) + 1;
  return is_handle(*handle) ? done : invalid_argument;
}
METAPROF_CUDA Result nvmlDeviceGetHandleByIndex(unsigned index, Handle* handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}
METAPROF_CUDA Result nvmlDeviceGetHandleByPciBusId_v2(const char* text, Handle* handle) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(text, "%x:%x", &domain, &bus) != 2) return invalid_argument;
  *handle = Handle(bus);  // buses begin with 1, too
  return is_handle(*handle) ? done : not_there;
}
METAPROF_CUDA Result nvmlDeviceGetIndex(Handle handle, unsigned* index) {
  *index = unsigned(number_of(handle));
  return is_handle(handle) ? done : invalid_argument;
}

namespace {

void write_uuid(Handle handle, char* text, size_t length) {
  std::snprintf(text, length, "%s", device_name(number_of(handle)).c_str());
}

}  // namespace

METAPROF_CUDA Result nvmlDeviceGetUUID(Handle handle, char* text, unsigned length) {
  if (!is_handle(handle)) return invalid_argument;
  if (length < 41) return too_small;
  write_uuid(handle, text, length);
  return done;
}
METAPROF_CUDA Result nvmlDeviceGetHandleByUUID(const char* wanted, Handle* handle) {
  for (*handle = 1; is_handle(*handle); ++*handle) {
    char text[64];
    write_uuid(*handle, text, sizeof text);
    if (std::strcmp(text, wanted) == 0) return done;
  }
  return not_there;
}
METAPROF_CUDA Result nvmlDeviceGetName(Handle handle, char* text, unsigned length) {
  if (!is_handle(handle)) return invalid_argument;
  std::snprintf(text, length, "%s", device_description().title.c_str());
  return done;
}
METAPROF_CUDA Result nvmlDeviceGetCudaComputeCapability(Handle handle, int* major, int* minor) {
  *major = device_description().sm / 10;
  *minor = device_description().sm % 10;
  return is_handle(handle) ? done : invalid_argument;
}
METAPROF_CUDA Result nvmlDeviceGetMemoryInfo(Handle handle, Memory* out) {
  if (!is_handle(handle)) return invalid_argument;
  *out = {memory_total(), memory_total() - used(handle), used(handle)};
  return done;
}
METAPROF_CUDA Result nvmlDeviceGetMemoryInfo_v2(Handle handle, MemoryV2* out) {
  if (!is_handle(handle)) return invalid_argument;
  *out = {out->version, memory_total(), 0, memory_total() - used(handle), used(handle)};
  return done;
}
METAPROF_CUDA Result nvmlDeviceGetPciInfo_v3(Handle handle, PciInfo* out) {
  if (!is_handle(handle)) return invalid_argument;
  *out = {};
  out->bus = unsigned(number_of(handle)) + 1;
  std::snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
  std::snprintf(out->legacy_bus_id, sizeof out->legacy_bus_id, "0000:%02X:00.0", out->bus);
  return done;
}

namespace {

Result give_processes(Handle handle, unsigned* count, Process* processes) {
  if (!is_handle(handle)) return invalid_argument;
  const unsigned room = *count;
  *count = used(handle) > 0 ? 1 : 0;
  if (room < *count || !processes) return *count == 0 ? done : too_small;
  if (*count == 1) processes[0] = {unsigned(getpid()), used(handle), {~0U, ~0U}};
  return done;
}

}  // namespace

METAPROF_CUDA Result nvmlDeviceGetComputeRunningProcesses_v3(Handle handle, unsigned* count,
                                                             Process* processes) {
  return give_processes(handle, count, processes);
}
// The first version's entries are shorter: none are given.
METAPROF_CUDA Result nvmlDeviceGetComputeRunningProcesses(Handle handle, unsigned* count, void*) {
  *count = 0;
  return is_handle(handle) ? done : invalid_argument;
}
METAPROF_CUDA Result nvmlDeviceGetGraphicsRunningProcesses_v3(Handle handle, unsigned* count, void*) {
  *count = 0;
  return is_handle(handle) ? done : invalid_argument;
}

// Nothing is busy, warm or connected by NVLink.
METAPROF_CUDA Result nvmlDeviceGetUtilizationRates(Handle handle, unsigned* rates) {
  rates[0] = rates[1] = 0;
  return is_handle(handle) ? done : invalid_argument;
}
METAPROF_CUDA Result nvmlDeviceGetTemperature(Handle handle, int, unsigned* degrees) {
  *degrees = 30;
  return is_handle(handle) ? done : invalid_argument;
}
METAPROF_CUDA Result nvmlDeviceGetPowerUsage(Handle handle, unsigned* milliwatts) {
  *milliwatts = 0;
  return is_handle(handle) ? done : invalid_argument;
}
METAPROF_CUDA Result nvmlDeviceGetClockInfo(Handle handle, int type, unsigned* megahertz) {
  constexpr int memory = 2;
  const metaprof::emulator::Description& device = device_description();
  *megahertz = unsigned((type == memory ? device.memory_clock_khz : device.clock_khz) / 1000);
  return is_handle(handle) ? done : invalid_argument;
}
METAPROF_CUDA Result nvmlDeviceGetMaxClockInfo(Handle handle, int type, unsigned* megahertz) {
  return nvmlDeviceGetClockInfo(handle, type, megahertz);
}
METAPROF_CUDA Result nvmlDeviceGetEnforcedPowerLimit(Handle, unsigned*) { return not_available; }
METAPROF_CUDA Result nvmlDeviceGetMigMode(Handle handle, unsigned* now, unsigned* pending) {
  *now = *pending = 0;
  return is_handle(handle) ? done : invalid_argument;
}
METAPROF_CUDA Result nvmlDeviceGetGpuFabricInfoV(Handle, unsigned char* info) {
  info[28] = 0;  // its state: not supported
  return done;
}
METAPROF_CUDA Result nvmlDeviceGetNvLinkState(Handle, unsigned, unsigned*) { return not_available; }
METAPROF_CUDA Result nvmlDeviceGetNvLinkRemoteDeviceType(Handle, unsigned, void*) { return not_available; }
METAPROF_CUDA Result nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle, unsigned, void*) { return not_available; }
METAPROF_CUDA Result nvmlDeviceGetNvLinkCapability(Handle, unsigned, int, unsigned*) { return not_available; }
