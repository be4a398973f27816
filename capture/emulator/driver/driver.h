#pragma once
// The driver's types, as far as the stand-in looks into them.

#include <cstddef>
#include <cstdint>

#include "capture/emulator/machine/devices.h"
#include "capture/emulator/machine/error.h"
#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

/// A context is that of a device, or a green one of it: programs only pass it around.
struct Context;
METAPROF_EXPORT Context* context_of(int device);
/// -1: no context.
int device_of(Context* context);

inline bool is_device(int device) { return device >= 0 && device < device_count(); }

/// Every call that needs a context begins with it.
inline Error use_context() {
  if (const Error error = enter_initialized()) return error;
  if (device_count() == 0) return no_device;
  activate(current_device());
  return success;
}

}  // namespace metaprof::emulator

/// A call of the driver: named after CUDA's function.
#define METAPROF_DRIVER METAPROF_CUDA metaprof::emulator::Error
