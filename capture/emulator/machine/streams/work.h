#pragma once

#include "capture/emulator/machine/export.h"

/// Called by functions of libraries that do something on a stream: it is given a piece of work. The result is a cudaError_t.
METAPROF_CUDA int metaprof_emulator_work(void* stream);
