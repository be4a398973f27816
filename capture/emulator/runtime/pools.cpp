// Memory pools.

#include "capture/emulator/machine/memory/pools.h"

#include "capture/emulator/machine/streams/streams.h"
#include "capture/emulator/runtime/runtime.h"

using namespace metaprof::emulator;

namespace {

struct PoolProperties {  // the beginning of cudaMemPoolProps
  int allocation, handles, location, device;
};

bool is_device(int device) { return device >= 0 && device < device_count(); }

}  // namespace

METAPROF_RUNTIME cudaMallocFromPoolAsync(void** out, size_t bytes, Pool* pool, Stream* stream) {
  *out = nullptr;
  if (const Error error = use_device()) return fail(error);
  if (const Error error = submit(stream, NodeKind::allocation)) return fail(error);
  return result(allocate_from_pool(out, pool, bytes));
}
METAPROF_RUNTIME cudaMallocAsync(void** out, size_t bytes, Stream* stream) {
  *out = nullptr;
  if (const Error error = use_device()) return fail(error);
  return cudaMallocFromPoolAsync(out, bytes, current_pool(current_device()), stream);
}
METAPROF_RUNTIME cudaFreeAsync(void* address, Stream* stream) {
  if (const Error error = use_device()) return fail(error);
  if (const Error error = submit(stream, NodeKind::free)) return fail(error);
  return address ? result(free_to_pool(address, moment_of(stream))) : success;
}

METAPROF_RUNTIME cudaDeviceGetDefaultMemPool(Pool** out, int device) {
  if (const Error error = enter()) return fail(error);
  if (!is_device(device)) return fail(invalid_device);
  *out = default_pool(device);
  return success;
}
METAPROF_RUNTIME cudaDeviceGetMemPool(Pool** out, int device) {
  if (const Error error = enter()) return fail(error);
  if (!is_device(device)) return fail(invalid_device);
  *out = current_pool(device);
  return success;
}
METAPROF_RUNTIME cudaDeviceSetMemPool(int device, Pool* pool) {
  if (const Error error = enter()) return fail(error);
  if (!is_device(device)) return fail(invalid_device);
  return result(set_current_pool(device, pool));
}
METAPROF_RUNTIME cudaMemPoolCreate(Pool** out, const PoolProperties* properties) {
  if (const Error error = use_device()) return fail(error);
  constexpr int on_a_device = 1;  // cudaMemLocationTypeDevice
  if (properties->location != on_a_device || !is_device(properties->device)) return fail(invalid_value);
  return result(make_pool(out, properties->device));
}
METAPROF_RUNTIME cudaMemPoolDestroy(Pool* pool) { return result(destroy_pool(pool)); }
METAPROF_RUNTIME cudaMemPoolTrimTo(Pool* pool, size_t keep) { return result(trim_pool(pool, keep)); }
METAPROF_RUNTIME cudaMemPoolGetAttribute(Pool* pool, int attribute, void* value) {
  return result(pool_attribute(pool, attribute, value));
}
METAPROF_RUNTIME cudaMemPoolSetAttribute(Pool* pool, int attribute, void* value) {
  return result(set_pool_attribute(pool, attribute, value));
}
// Every device may use every pool.
METAPROF_RUNTIME cudaMemPoolSetAccess() { return result(enter()); }
METAPROF_RUNTIME cudaMemPoolGetAccess(int* flags) {
  *flags = 3;  // read and write
  return result(enter());
}
