#pragma once
// Functions of the driver by their names.

#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

/// The newest version of the function that libcuda.so.1 has ("cuMemFree" is cuMemFree_v2 there); null if it has none.
METAPROF_EXPORT void* entry_point(const char* name);

}  // namespace metaprof::emulator
