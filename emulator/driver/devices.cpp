// Devices, contexts, errors, versions.

#include <cstdio>
#include <cstring>

#include "emulator/driver/driver.h"
#include "emulator/machine/entry_point.h"
#include "emulator/machine/memory.h"
#include "emulator/machine/pools.h"
#include "emulator/machine/streams.h"
#include "emulator/machine/versions.h"

namespace metaprof::emulator {

struct Context {};

namespace {

Context contexts[kMostDevices];

}  // namespace

Context* context_of(int device) { return &contexts[device]; }

int device_of(const Context* context) {
  for (int d = 0; d < kMostDevices; ++d)
    if (&contexts[d] == context) return d;
  return -1;
}

}  // namespace metaprof::emulator

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
  if (const Error error = enter()) return error;
  *count = device_count();
  return success;
}
METAPROF_DRIVER cuDeviceGet(int* out, int device) {
  if (const Error error = enter()) return error;
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

METAPROF_DRIVER cuDevicePrimaryCtxRetain(Context** context, int device) {
  if (const Error error = enter()) return error;
  if (!is_device(device)) return invalid_device;
  activate(device);
  *context = context_of(device);
  return success;
}
METAPROF_DRIVER cuDevicePrimaryCtxRelease_v2(int device) {
  return is_device(device) ? success : invalid_device;
}
METAPROF_DRIVER cuDevicePrimaryCtxSetFlags_v2(int device, unsigned) {
  return is_device(device) ? success : invalid_device;
}
METAPROF_DRIVER cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  if (const Error error = enter()) return error;
  if (!is_device(device)) return invalid_device;
  *flags = 0;
  *active = is_active(device) ? 1 : 0;
  return success;
}
METAPROF_DRIVER cuCtxGetCurrent(Context** context) {
  if (const Error error = enter()) return error;
  *context = is_active(current_device()) ? context_of(current_device()) : nullptr;
  return success;
}
METAPROF_DRIVER cuCtxSetCurrent(Context* context) {
  if (const Error error = enter()) return error;
  if (!context) return success;
  const int device = device_of(context);
  return device < 0 ? invalid_context : set_current_device(device);
}

namespace {

thread_local int pushed[64], depth = 0;

}  // namespace

METAPROF_DRIVER cuCtxPushCurrent_v2(Context* context) {
  const int device = device_of(context);
  if (device < 0 || depth == 64) return invalid_context;
  pushed[depth++] = current_device();
  return set_current_device(device);
}
METAPROF_DRIVER cuCtxPopCurrent_v2(Context** context) {
  if (context) *context = context_of(current_device());
  return depth == 0 ? invalid_context : set_current_device(pushed[--depth]);
}
METAPROF_DRIVER cuCtxCreate_v2(Context** context, unsigned, int device) {
  if (const Error error = cuDevicePrimaryCtxRetain(context, device)) return error;
  return set_current_device(device);
}
METAPROF_DRIVER cuCtxDestroy_v2(Context*) { return success; }
METAPROF_DRIVER cuCtxGetDevice(int* device) {
  if (const Error error = enter()) return error;
  if (!is_active(current_device())) return invalid_context;
  *device = current_device();
  return success;
}
METAPROF_DRIVER cuCtxGetLimit(size_t* value, int) {
  *value = 0;
  return success;
}
METAPROF_DRIVER cuCtxSetLimit(int, size_t) { return success; }
METAPROF_DRIVER cuCtxGetFlags(unsigned* flags) {
  *flags = 0;
  return success;
}
METAPROF_DRIVER cuCtxGetApiVersion(Context*, unsigned* version) {
  *version = 3020;
  return success;
}
METAPROF_DRIVER cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return success;
}
METAPROF_DRIVER cuCtxSynchronize() {
  if (const Error error = use_context()) return error;
  pools_wait(current_device());
  return wait_for_device(current_device());
}
METAPROF_DRIVER cuCtxEnablePeerAccess(Context*, unsigned) { return success; }

// The newest function of a name. A program that asks gets the refusing one for what is not there, as for a call.
METAPROF_DRIVER cuGetProcAddress_v2(const char* name, void** out, int, uint64_t, int* status) {
  *out = entry_point(name);
  if (status) *status = *out ? 0 : 1;
  return *out ? success : not_found;
}
METAPROF_DRIVER cuGetProcAddress(const char* name, void** out, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, out, version, flags, nullptr);
}
METAPROF_DRIVER cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return not_found;
}
// Whoever wants the driver's messages gets none.
METAPROF_DRIVER cuLogsRegisterCallback() { return success; }
METAPROF_DRIVER cuLogsUnregisterCallback() { return success; }
METAPROF_DRIVER cuProfilerStart() { return success; }
METAPROF_DRIVER cuProfilerStop() { return success; }
