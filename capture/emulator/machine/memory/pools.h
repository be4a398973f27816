#pragma once
// Memory pools (cudaMallocAsync): bytes that a pool has taken from its device, and how many of them are in use.

#include <cstddef>
#include <cstdint>

#include "capture/emulator/machine/error.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/streams/clock.h"

namespace metaprof::emulator {

struct Pool;

/// The pool that a device has from the start, until another takes its place.
METAPROF_EXPORT Pool* default_pool(int device);
METAPROF_EXPORT Pool* current_pool(int device);
METAPROF_EXPORT Error set_current_pool(int device, Pool* pool);
METAPROF_EXPORT Error make_pool(Pool** out, int device);
METAPROF_EXPORT Error destroy_pool(Pool* pool);

METAPROF_EXPORT Error allocate_from_pool(void** out, Pool* pool, size_t bytes);
/// A block that goes back to its pool. The pool may use it at once: it has a stream that needs it wait (as
/// cudaMemPoolReuseAllowInternalDependencies allows); the device has it from `moment` on. Error invalid_value: the
/// address is none of a pool.
METAPROF_EXPORT Error free_to_pool(void* address, const Moment& moment);
/// Gives back to the device what is not in use, down to `keep` bytes.
METAPROF_EXPORT Error trim_pool(Pool* pool, size_t keep);
/// What a wait does: trims to the release threshold what streams are done with.
METAPROF_EXPORT void pools_wait(int device);

/// CUDA's cudaMemPoolAttr; sizes and the threshold are uint64_t, the others int.
METAPROF_EXPORT Error pool_attribute(Pool* pool, int attribute, void* value);
METAPROF_EXPORT Error set_pool_attribute(Pool* pool, int attribute, const void* value);

}  // namespace metaprof::emulator
