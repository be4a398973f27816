// Devices, errors, versions; functions by their names.

#include <cstdio>
#include <cstring>

#include "capture/emulator/driver/driver.h"
#include "capture/emulator/machine/entry_point.h"
#include "capture/emulator/machine/memory/memory.h"
#include "capture/emulator/machine/memory/pools.h"
#include "capture/emulator/machine/missing.h"
#include "capture/emulator/machine/versions.h"

using namespace metaprof::emulator;

METAPROF_DRIVER cuInit(unsigned) { return enter(); }
METAPROF_DRIVER cuDriverGetVersion(int* version) {
  *version = driver_version();
  return success;
}
METAPROF_DRIVER cuGetErrorName(int error, const char** name) {
  *name = driver_name(error);
  return *name ? success : invalid_value;
}
METAPROF_DRIVER cuGetErrorString(int error, const char** text) {
  *text = description(error);
  return *text ? success : invalid_value;
}

METAPROF_DRIVER cuDeviceGetCount(int* count) {
  if (const Error error = enter_initialized()) return error;
  *count = device_count();
  return success;
}
METAPROF_DRIVER cuDeviceGet(int* out, int device) {
  if (const Error error = enter_initialized()) return error;
  *out = device;
  return is_device(device) ? success : invalid_device;
}
METAPROF_DRIVER cuDeviceGetName(char* name, int length, int device) {
  if (!is_device(device)) return invalid_device;
  std::snprintf(name, size_t(length), "%s", device_description().title.c_str());
  return success;
}
METAPROF_DRIVER cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (!is_device(device)) return invalid_device;
  *value = device_attribute(attribute, device);
  return success;
}
METAPROF_DRIVER cuDeviceComputeCapability(int* major, int* minor, int device) {
  if (!is_device(device)) return invalid_device;
  *major = device_description().sm / 10;
  *minor = device_description().sm % 10;
  return success;
}
METAPROF_DRIVER cuDeviceTotalMem_v2(size_t* bytes, int device) {
  if (!is_device(device)) return invalid_device;
  *bytes = memory_total();
  return success;
}
METAPROF_DRIVER cuDeviceGetUuid(unsigned char* bytes, int device) {
  if (!is_device(device)) return invalid_device;
  device_uuid(device, bytes);
  return success;
}
METAPROF_DRIVER cuDeviceGetUuid_v2(unsigned char* bytes, int device) {
  return cuDeviceGetUuid(bytes, device);
}
METAPROF_DRIVER cuDeviceGetPCIBusId(char* text, int length, int device) {
  if (!is_device(device)) return invalid_device;
  std::snprintf(text, size_t(length), "0000:%02X:00.0", physical_device(device) + 1);
  return success;
}
METAPROF_DRIVER cuDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!is_device(device) || !is_device(peer)) return invalid_device;
  *can = device != peer ? 1 : 0;
  return success;
}
METAPROF_DRIVER cuDeviceGetDefaultMemPool(Pool** pool, int device) {
  if (!is_device(device)) return invalid_device;
  *pool = default_pool(device);
  return success;
}

// The newest function of a name. A program that asks gets the refusing one for what is not there, as for a call.
METAPROF_DRIVER cuGetProcAddress_v2(const char* name, void** out, int, uint64_t, int* status) {
  *out = entry_point(name);
  if (status) *status = *out ? 0 : 1;
  return *out ? success : not_found;
}
METAPROF_DRIVER cuGetProcAddress(const char* name, void** out, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, out, version, flags, nullptr);
}

namespace {

// The tables that a runtime asks for before all others: of CUDA 13, and of CUDA 12.
constexpr unsigned char kRuntimeTables[][16] = {
    {0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9},
    {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9}};

}  // namespace

// Tables of functions without names, which NVIDIA's libraries share. The runtime uses them, too, and among them one by which
// it makes sure that the driver is NVIDIA's: this one is not, so a program that has that runtime in itself cannot use it.
METAPROF_DRIVER cuGetExportTable(const void** table, const unsigned char* name) {
  *table = nullptr;
  for (const auto& known : kRuntimeTables)
    if (std::memcmp(known, name, sizeof known) == 0)
      say_missing(
          "libcuda.so.1", "cuGetExportTable",
          "a CUDA runtime that is linked statically into this program or one of its libraries takes only "
          "NVIDIA's driver; its calls fail. Link it dynamically (nvcc -cudart shared)");
  return not_found;
}
// Whoever wants the driver's messages gets none.
METAPROF_DRIVER cuLogsRegisterCallback() { return success; }
METAPROF_DRIVER cuLogsUnregisterCallback() { return success; }
METAPROF_DRIVER cuProfilerStart() { return success; }
METAPROF_DRIVER cuProfilerStop() { return success; }
