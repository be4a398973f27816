// Memory of devices, pinned and managed memory of the host, and what an address is.

#include "capture/emulator/machine/memory/memory.h"

#include <unistd.h>

#include <cstring>

#include "capture/emulator/machine/streams/capture.h"
#include "capture/emulator/machine/streams/streams.h"
#include "capture/emulator/runtime/runtime.h"

using namespace metaprof::emulator;

namespace {

struct PointerAttributes {
  int type, device;
  void *device_pointer, *host_pointer;
#if METAPROF_CUDA_MAJOR >= 13
  long reserved[8];
#endif
};
static_assert(sizeof(PointerAttributes) == (METAPROF_CUDA_MAJOR >= 13 ? 88 : 24));

// What gives memory back waits for the device, which may still use it.
Error begin_to_free() {
  if (const Error error = check_unsafe_call()) return error;
  return wait_for_device(current_device());
}

Error give_host_memory(void** out, size_t bytes, Kind kind) {
  *out = nullptr;
  if (const Error error = use_device()) return fail(error);
  if (bytes == 0) return success;
  if (const Error error = check_unsafe_call()) return fail(error);
  *out = allocate_host(bytes, kind, current_device());
  return *out ? success : fail(out_of_memory);
}

}  // namespace

METAPROF_RUNTIME cudaMalloc(void** out, size_t bytes) {
  *out = nullptr;
  if (const Error error = use_device()) return fail(error);
  if (bytes == 0) return success;
  if (const Error error = check_unsafe_call()) return fail(error);
  *out = reinterpret_cast<void*>(allocate(current_device(), bytes, "cudaMalloc"));
  return *out ? success : fail(out_of_memory);
}

METAPROF_RUNTIME cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(out, *pitch * height);
}

METAPROF_RUNTIME cudaFree(void* address) {
  if (const Error error = use_device()) return fail(error);
  if (!address) return success;
  if (const Error error = begin_to_free()) return fail(error);
  if (release(uintptr_t(address), Kind::device, "cudaFree")) return success;
  return free_host(address, Kind::managed, "cudaFree") ? success : fail(invalid_value);
}

METAPROF_RUNTIME cudaMallocManaged(void** out, size_t bytes, unsigned) {
  return bytes == 0 ? fail(invalid_value) : give_host_memory(out, bytes, Kind::managed);
}

METAPROF_RUNTIME cudaHostAlloc(void** out, size_t bytes, unsigned) {
  return give_host_memory(out, bytes, Kind::pinned);
}
METAPROF_RUNTIME cudaMallocHost(void** out, size_t bytes) {
  return give_host_memory(out, bytes, Kind::pinned);
}
METAPROF_RUNTIME cudaFreeHost(void* address) {
  if (const Error error = use_device()) return fail(error);
  if (!address) return success;
  if (const Error error = begin_to_free()) return fail(error);
  return free_host(address, Kind::pinned, "cudaFreeHost") ? success : fail(invalid_value);
}

METAPROF_RUNTIME cudaHostRegister(void* address, size_t bytes, unsigned) {
  if (const Error error = use_device()) return fail(error);
  if (!address || bytes == 0) return fail(invalid_value);
  return add_host_range(uintptr_t(address), bytes, Kind::registered, current_device())
             ? success
             : fail(host_memory_already_registered);
}
METAPROF_RUNTIME cudaHostUnregister(void* address) {
  if (const Error error = use_device()) return fail(error);
  return release(uintptr_t(address), Kind::registered, "cudaHostUnregister")
             ? success
             : fail(host_memory_not_registered);
}
METAPROF_RUNTIME cudaHostGetDevicePointer(void** out, void* address, unsigned) {
  if (const Error error = use_device()) return fail(error);
  *out = find_range(address) ? address : nullptr;
  return *out ? success : fail(invalid_value);
}
METAPROF_RUNTIME cudaHostGetFlags(unsigned* flags, void* address) {
  if (const Error error = use_device()) return fail(error);
  *flags = 2;  // mapped
  return find_range(address) ? success : fail(invalid_value);
}

METAPROF_RUNTIME cudaMemGetInfo(size_t* available, size_t* total) {
  if (const Error error = use_device()) return fail(error);
  *total = memory_total();
  *available = *total - memory_in_use(current_device());
  return success;
}

METAPROF_RUNTIME cudaPointerGetAttributes(PointerAttributes* out, const void* address) {
  if (const Error error = enter()) return fail(error);
  if (!address) return fail(invalid_value);
  *out = {};
  const std::optional<Range> range = find_range(address);
  if (!range) {
    out->device = -1;
    return success;
  }
  out->device = range->device;
  out->device_pointer = const_cast<void*>(address);
  const bool on_device = range->kind == Kind::device || range->kind == Kind::mapped;
  out->type = on_device ? device_memory : range->kind == Kind::managed ? managed_memory : host_memory;
  if (!on_device) out->host_pointer = const_cast<void*>(address);
  return success;
}

// Advice about managed memory and where it should lie changes nothing.
METAPROF_RUNTIME cudaMemAdvise() { return result(enter()); }
METAPROF_RUNTIME cudaMemPrefetchAsync() { return result(enter()); }
#if METAPROF_CUDA_MAJOR == 12
METAPROF_RUNTIME cudaMemAdvise_v2() { return result(enter()); }
METAPROF_RUNTIME cudaMemPrefetchAsync_v2() { return result(enter()); }
#endif

// Memory of another process: a handle names it, and it gets addresses of its own there, but takes no memory.
namespace {

struct IpcMemory {  // cudaIpcMemHandle_t: 64 bytes
  int device;       // as the machine numbers it
  int owner;
  uintptr_t address;
  size_t bytes;
  char rest[40];
};
static_assert(sizeof(IpcMemory) == 64);

}  // namespace

METAPROF_RUNTIME cudaIpcGetMemHandle(IpcMemory* out, void* address) {
  if (const Error error = use_device()) return fail(error);
  const std::optional<Range> range = find_range(address);
  if (!range || range->kind != Kind::device) return fail(invalid_value);
  *out = {physical_device(range->device), int(getpid()), range->base, range->bytes, {}};
  return success;
}
METAPROF_RUNTIME cudaIpcOpenMemHandle(void** out, IpcMemory handle, unsigned) {
  if (const Error error = use_device()) return fail(error);
  if (handle.bytes == 0 || handle.owner == getpid()) return fail(invalid_value);
  *out = reinterpret_cast<void*>(borrow_addresses(current_device(), handle.bytes));
  return *out ? success : fail(out_of_memory);
}
METAPROF_RUNTIME cudaIpcCloseMemHandle(void* address) {
  if (const Error error = use_device()) return fail(error);
  return release(uintptr_t(address), Kind::device, "cudaIpcCloseMemHandle") ? success : fail(invalid_value);
}
