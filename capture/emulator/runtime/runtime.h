#pragma once
// The runtime's types, as far as the stand-in looks into them, and how its calls report errors. METAPROF_CUDA_MAJOR is
// the CUDA release (12 or 13) whose libcudart this is.

#include <cstddef>
#include <cstdint>

#include "capture/emulator/machine/devices.h"
#include "capture/emulator/machine/error.h"
#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

struct Dim3 {
  unsigned x, y, z;
};

/// cudaMemoryType.
enum MemoryType : int { unregistered_memory = 0, host_memory = 1, device_memory = 2, managed_memory = 3 };

/// Kept as this thread's last error, and given back.
Error fail(Error error);
/// `error` as the result of a call: kept if it is one.
inline Error result(Error error) { return error == success ? success : fail(error); }

/// Every call that needs a device begins with it: makes the context of the thread's device.
Error use_device();

}  // namespace metaprof::emulator

/// A call of the runtime: named after CUDA's function.
#define METAPROF_RUNTIME METAPROF_CUDA metaprof::emulator::Error
