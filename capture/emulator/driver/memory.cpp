// Memory of devices and of the host, copies, fills.

#include "capture/emulator/machine/memory/memory.h"

#include <cstring>

#include "capture/emulator/driver/driver.h"
#include "capture/emulator/machine/memory/copies.h"
#include "capture/emulator/machine/memory/pools.h"
#include "capture/emulator/machine/streams/capture.h"
#include "capture/emulator/machine/streams/streams.h"

using namespace metaprof::emulator;

namespace {

void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

Error begin(Stream* stream, NodeKind kind, const Cost& cost = {}) {
  if (const Error error = use_context()) return error;
  return submit(stream, kind, cost);
}
Error begin_copy(Stream* stream, uintptr_t to, uintptr_t from, size_t bytes) {
  return begin(stream, NodeKind::copy, cost_of_copy(pointer(to), pointer(from), bytes));
}

}  // namespace

METAPROF_DRIVER cuMemAlloc_v2(uintptr_t* out, size_t bytes) {
  *out = 0;
  if (const Error error = use_context()) return error;
  if (bytes == 0) return invalid_value;
  if (const Error error = check_unsafe_call()) return error;
  *out = allocate(current_device(), bytes, "cuMemAlloc");
  return *out ? success : out_of_memory;
}
METAPROF_DRIVER cuMemFree_v2(uintptr_t address) {
  if (const Error error = use_context()) return error;
  if (const Error error = check_unsafe_call()) return error;
  return address == 0 || release(address, Kind::device, "cuMemFree") ? success : invalid_value;
}
METAPROF_DRIVER cuMemAllocHost_v2(void** out, size_t bytes) {
  *out = nullptr;
  if (const Error error = use_context()) return error;
  if (bytes == 0) return invalid_value;
  if (const Error error = check_unsafe_call()) return error;
  *out = allocate_host(bytes, Kind::pinned, current_device());
  return *out ? success : out_of_memory;
}
METAPROF_DRIVER cuMemFreeHost(void* address) {
  if (const Error error = use_context()) return error;
  if (const Error error = check_unsafe_call()) return error;
  if (const Error error = wait_for_device(current_device())) return error;
  return free_host(address, Kind::pinned, "cuMemFreeHost") ? success : invalid_value;
}
METAPROF_DRIVER cuMemAllocAsync(uintptr_t* out, size_t bytes, Stream* stream) {
  *out = 0;
  if (const Error error = begin(stream, NodeKind::allocation)) return error;
  void* address = nullptr;
  const Error error = allocate_from_pool(&address, current_pool(current_device()), bytes);
  *out = uintptr_t(address);
  return error;
}
METAPROF_DRIVER cuMemFreeAsync(uintptr_t address, Stream* stream) {
  if (const Error error = begin(stream, NodeKind::free)) return error;
  return free_to_pool(pointer(address), moment_of(stream));
}
METAPROF_DRIVER cuMemGetInfo_v2(size_t* available, size_t* total) {
  if (const Error error = use_context()) return error;
  *total = memory_total();
  *available = *total - memory_in_use(current_device());
  return success;
}
METAPROF_DRIVER cuMemGetAddressRange_v2(uintptr_t* base, size_t* bytes, uintptr_t address) {
  const std::optional<Range> range = find_range(pointer(address));
  if (!range) return not_found;
  if (base) *base = range->base;
  if (bytes) *bytes = range->bytes;
  return success;
}

// The numbers are CUDA's CUpointer_attribute.
METAPROF_DRIVER cuPointerGetAttribute(void* out, int attribute, uintptr_t address) {
  if (const Error error = enter_initialized()) return error;
  const std::optional<Range> range = find_range(pointer(address));
  if (!range) return invalid_value;
  const bool on_device = range->kind == Kind::device || range->kind == Kind::mapped;
  switch (attribute) {
    case 1: *static_cast<Context**>(out) = context_of(range->device); return success;
    case 2: *static_cast<unsigned*>(out) = on_device ? 2 : 1; return success;  // memory type
    case 3:
    case 4: *static_cast<uintptr_t*>(out) = address; return success;     // on the device, on the host
    case 6: *static_cast<unsigned*>(out) = 0; return success;            // operations are synchronous
    case 7: *static_cast<uint64_t*>(out) = range->base; return success;  // identity of the buffer
    case 8: *static_cast<unsigned*>(out) = range->kind == Kind::managed; return success;
    case 9: *static_cast<int*>(out) = range->device; return success;
    case 10: *static_cast<int*>(out) = 0; return success;  // may be shared by cudaIpc
    case 11: *static_cast<uintptr_t*>(out) = range->base; return success;
    case 12: *static_cast<size_t*>(out) = range->bytes; return success;
    case 13: *static_cast<int*>(out) = 1; return success;  // is mapped
    default: return not_supported;
  }
}
METAPROF_DRIVER cuPointerSetAttribute(const void*, int, uintptr_t) { return success; }

METAPROF_DRIVER cuMemcpy(uintptr_t to, uintptr_t from, size_t bytes) {
  if (const Error error = begin_copy(nullptr, to, from, bytes)) return error;
  if (const Error error = copy_bytes(pointer(to), pointer(from), bytes)) return error;
  return finish(nullptr);
}
METAPROF_DRIVER cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t bytes, Stream* stream) {
  if (const Error error = begin_copy(stream, to, from, bytes)) return error;
  if (const Error error = copy_bytes(pointer(to), pointer(from), bytes)) return error;
  return host_waits(pointer(to), pointer(from)) ? finish(stream) : success;
}
METAPROF_DRIVER cuMemcpyHtoD_v2(uintptr_t to, const void* from, size_t bytes) {
  return cuMemcpy(to, uintptr_t(from), bytes);
}
METAPROF_DRIVER cuMemcpyDtoH_v2(void* to, uintptr_t from, size_t bytes) {
  return cuMemcpy(uintptr_t(to), from, bytes);
}
METAPROF_DRIVER cuMemcpyDtoD_v2(uintptr_t to, uintptr_t from, size_t bytes) {
  return cuMemcpy(to, from, bytes);
}
METAPROF_DRIVER cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t bytes, Stream* stream) {
  return cuMemcpyAsync(to, uintptr_t(from), bytes, stream);
}
METAPROF_DRIVER cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t bytes, Stream* stream) {
  return cuMemcpyAsync(uintptr_t(to), from, bytes, stream);
}
METAPROF_DRIVER cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, Stream* stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}

namespace {

// Fills `count` elements of 1, 2 or 4 bytes; in host memory too.
template <class T>
Error fill_elements(uintptr_t to, T value, size_t count, Stream* stream) {
  if (const Error error = begin(stream, NodeKind::fill, cost_of_fill(pointer(to), count * sizeof(T))))
    return error;
  if (is_device_address(pointer(to))) return fill_bytes(pointer(to), 0, count * sizeof(T));
  for (size_t i = 0; i < count; ++i) std::memcpy(static_cast<T*>(pointer(to)) + i, &value, sizeof value);
  return success;
}

}  // namespace

METAPROF_DRIVER cuMemsetD8_v2(uintptr_t to, unsigned char value, size_t count) {
  return fill_elements(to, value, count, nullptr);
}
METAPROF_DRIVER cuMemsetD16_v2(uintptr_t to, unsigned short value, size_t count) {
  return fill_elements(to, value, count, nullptr);
}
METAPROF_DRIVER cuMemsetD32_v2(uintptr_t to, unsigned value, size_t count) {
  return fill_elements(to, value, count, nullptr);
}
METAPROF_DRIVER cuMemsetD8Async(uintptr_t to, unsigned char value, size_t count, Stream* stream) {
  return fill_elements(to, value, count, stream);
}
METAPROF_DRIVER cuMemsetD16Async(uintptr_t to, unsigned short value, size_t count, Stream* stream) {
  return fill_elements(to, value, count, stream);
}
METAPROF_DRIVER cuMemsetD32Async(uintptr_t to, unsigned value, size_t count, Stream* stream) {
  return fill_elements(to, value, count, stream);
}
