#pragma once

#include "capture/emulator/machine/export.h"

/// Called by a function of the interface that no stand-in has: the first call of each is said on stderr and logged.
METAPROF_CUDA void metaprof_emulator_missing(const char* library, const char* function);

namespace metaprof::emulator {

/// The same of something that fails for a reason that the user can do something about: `sentence` says which.
void say_missing(const char* library, const char* function, const char* sentence);

}  // namespace metaprof::emulator
