#pragma once

#include <cstdint>

#include "capture/emulator/machine/export.h"

/// Called by functions of libraries that do something on a stream: it is given a piece of work. The result is a cudaError_t.
METAPROF_CUDA int metaprof_emulator_work(void* stream);
/// The same for work whose cost is known: bytes of device memory, FLOPs (2 per multiply-add), bytes of an element.
METAPROF_CUDA int metaprof_emulator_work_of(void* stream, double moved, double flops, int element_bytes);
