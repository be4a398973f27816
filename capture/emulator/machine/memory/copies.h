#pragma once
// Copies and fills. Device memory holds nothing: what is read from it is zero, what is written to it is counted.

#include <cstddef>
#include <cstdint>

#include "capture/emulator/machine/error.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/streams/durations.h"

namespace metaprof::emulator {

/// What the addresses are is found out. Device memory that nobody holds gives invalid_value.
METAPROF_EXPORT Error copy_bytes(void* to, const void* from, size_t bytes);
METAPROF_EXPORT Error fill_bytes(void* to, int value, size_t bytes);
/// Whether a copy on a stream returns only when it is complete: to memory of the host that CUDA does not know.
METAPROF_EXPORT bool host_waits(const void* to, const void* from);
/// What a copy costs the device, and a fill.
METAPROF_EXPORT Cost cost_of_copy(const void* to, const void* from, size_t bytes);
METAPROF_EXPORT Cost cost_of_fill(const void* to, size_t bytes);
/// Rows of `width` bytes, `to_pitch` and `from_pitch` bytes apart.
METAPROF_EXPORT Error copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                size_t height);

}  // namespace metaprof::emulator

/// Has `reader` called after each copy from a device to the host, in the thread that copies; it may change what came to
/// `host`. Null: nobody is called.
METAPROF_CUDA void metaprof_emulator_on_read(void (*reader)(void* host, const void* device, uint64_t bytes));
/// Has `writer` called after each copy from the host to a device, in the thread that copies. Null: nobody is called.
METAPROF_CUDA void metaprof_emulator_on_write(void (*writer)(const void* device, const void* host,
                                                             uint64_t bytes));
