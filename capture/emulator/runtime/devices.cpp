// Devices and their properties.

#include <cstdio>
#include <cstring>

#include "capture/emulator/machine/memory/memory.h"
#include "capture/emulator/machine/memory/pools.h"
#include "capture/emulator/machine/streams/streams.h"
#include "capture/emulator/runtime/device_properties.h"
#include "capture/emulator/runtime/runtime.h"

using namespace metaprof::emulator;

namespace {

bool is_device(int device) { return device >= 0 && device < device_count(); }

bool peer_access[kMostDevices][kMostDevices];

}  // namespace

METAPROF_RUNTIME cudaGetDeviceCount(int* count) {
  *count = 0;
  if (const Error error = enter()) return fail(error);
  *count = device_count();
  return *count == 0 ? fail(no_device) : success;
}

METAPROF_RUNTIME cudaGetDevice(int* device) {
  if (const Error error = enter()) return fail(error);
  *device = current_device();
  return success;
}

METAPROF_RUNTIME cudaSetDevice(int device) {
  if (const Error error = enter()) return fail(error);
  if (const Error error = set_current_device(device)) return fail(error);
#if METAPROF_CUDA_MAJOR >= 12  // since then it makes the context
  activate(device);
#endif
  return success;
}

METAPROF_RUNTIME cudaInitDevice(int device, unsigned, unsigned) {
  if (const Error error = enter()) return fail(error);
  if (!is_device(device)) return fail(invalid_device);
  activate(device);
  return success;
}

METAPROF_RUNTIME cudaDeviceSynchronize() {
  if (const Error error = use_device()) return fail(error);
  if (const Error error = wait_for_device(current_device())) return fail(error);
  pools_wait(current_device());
  return success;
}
METAPROF_RUNTIME cudaDeviceReset() { return result(enter()); }
METAPROF_RUNTIME cudaSetDeviceFlags(unsigned) { return result(enter()); }
METAPROF_RUNTIME cudaGetDeviceFlags(unsigned* flags) {
  *flags = 8;  // cudaDeviceMapHost
  return result(enter());
}
METAPROF_RUNTIME cudaDeviceSetLimit(int, size_t) { return result(use_device()); }
METAPROF_RUNTIME cudaDeviceGetLimit(size_t* value, int limit) {
  // What a device has from the start: stack, printf buffer, malloc heap; others 0.
  *value = limit == 0 ? 1024 : limit == 1 ? size_t(1) << 20 : limit == 2 ? size_t(8) << 20 : 0;
  return result(use_device());
}
METAPROF_RUNTIME cudaDeviceSetCacheConfig(int) { return result(use_device()); }

METAPROF_RUNTIME cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (const Error error = enter()) return fail(error);
  if (!is_device(device)) return fail(invalid_device);
  *value = device_attribute(attribute, device);
  return success;
}

METAPROF_RUNTIME cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return result(enter());
}

METAPROF_RUNTIME cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (const Error error = enter()) return fail(error);
  if (!is_device(device)) return fail(invalid_device);
  std::snprintf(text, size_t(length), "0000:%02X:00.0", physical_device(device) + 1);
  return success;
}
METAPROF_RUNTIME cudaDeviceGetByPCIBusId(int* device, const char* text) {
  if (const Error error = enter()) return fail(error);
  unsigned domain = 0, bus = 0;
  if (std::sscanf(text, "%x:%x", &domain, &bus) != 2) return fail(invalid_value);
  for (int d = 0; d < device_count(); ++d)
    if (unsigned(physical_device(d)) + 1 == bus) return *device = d, success;
  return fail(invalid_device);
}

METAPROF_RUNTIME cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (const Error error = enter()) return fail(error);
  if (!is_device(device) || !is_device(peer)) return fail(invalid_device);
  *can = device != peer ? 1 : 0;
  return success;
}
METAPROF_RUNTIME cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (const Error error = use_device()) return fail(error);
  if (!is_device(peer) || peer == current_device()) return fail(invalid_device);
  bool& enabled = peer_access[current_device()][peer];
  if (enabled) return fail(peer_access_already_enabled);
  enabled = true;
  return success;
}
METAPROF_RUNTIME cudaDeviceDisablePeerAccess(int peer) {
  if (const Error error = use_device()) return fail(error);
  if (!is_device(peer)) return fail(invalid_device);
  bool& enabled = peer_access[current_device()][peer];
  if (!enabled) return fail(peer_access_not_enabled);
  enabled = false;
  return success;
}
METAPROF_RUNTIME cudaDeviceGetP2PAttribute(int* value, int, int device, int peer) {
  *value = 0;
  return is_device(device) && is_device(peer) ? success : fail(invalid_device);
}

namespace {

void describe(DeviceProperties& p, int device) {
  const Description& d = device_description();
  p = {};
  std::snprintf(p.name, sizeof p.name, "%s", d.title.c_str());
  device_uuid(device, p.uuid);
  p.total_global_memory = memory_total();
  p.major = d.sm / 10;
  p.minor = d.sm % 10;
  p.multiprocessor_count = d.multiprocessors;
  p.max_threads_per_multiprocessor = d.threads_per_multiprocessor;
  p.max_blocks_per_multiprocessor = d.blocks_per_multiprocessor;
  p.shared_memory_per_block = 49152;
  p.shared_memory_per_block_optin = d.shared_memory_per_block;
  p.shared_memory_per_multiprocessor = d.shared_memory_per_multiprocessor;
  p.reserved_shared_memory_per_block = d.sm >= 80 ? 1024 : 0;
  p.registers_per_block = 65536;
  p.registers_per_multiprocessor = d.registers_per_multiprocessor;
  p.warp_size = 32;
  p.memory_pitch = 2147483647;
  p.max_threads_per_block = p.max_threads_dim[0] = p.max_threads_dim[1] = 1024;
  p.max_threads_dim[2] = 64;
  p.max_grid_size[0] = 2147483647;
  p.max_grid_size[1] = p.max_grid_size[2] = 65535;
  p.l2_cache_size = d.l2_cache;
  p.persisting_l2_cache_max_size = d.l2_cache / 4 * 3;
  p.memory_bus_width = d.memory_bus_bits;
  p.total_constant_memory = 65536;
  p.texture_alignment = p.surface_alignment = 512;
  p.texture_pitch_alignment = 32;
  p.pci_bus = physical_device(device) + 1;
  p.copy_engines = 3;
#if METAPROF_CUDA_MAJOR == 12
  p.clock_rate = d.clock_khz;
  p.memory_clock_rate = d.memory_clock_khz;
  p.device_overlap = 1;
#endif
  for (int* const yes :
       {&p.unified_addressing, &p.concurrent_kernels, &p.can_map_host_memory, &p.managed_memory,
        &p.cooperative_launch, &p.stream_priorities_supported, &p.ecc_enabled, &p.memory_pools_supported,
        &p.global_l1_cache_supported, &p.local_l1_cache_supported, &p.concurrent_managed_access,
        &p.compute_preemption, &p.host_register_supported, &p.registered_host_pointers, &p.ipc_events,
        &p.unified_function_pointers})
    *yes = 1;
  p.cluster_launch = d.sm >= 90 ? 1 : 0;
}

}  // namespace

#if METAPROF_CUDA_MAJOR == 12
METAPROF_RUNTIME cudaGetDeviceProperties_v2(DeviceProperties* out, int device) {
#else
METAPROF_RUNTIME cudaGetDeviceProperties(DeviceProperties* out, int device) {
#endif
  if (const Error error = enter()) return fail(error);
  if (!is_device(device)) return fail(invalid_device);
  describe(*out, device);
  return success;
}
