#pragma once
// The devices of the machine as this process sees them.

#include <cstddef>
#include <mutex>

#include "capture/emulator/machine/environment.h"
#include "capture/emulator/machine/error.h"
#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

constexpr int kMostDevices = 16;

/// Guards all state of the machine below; held over a fork, so that the child finds it whole.
METAPROF_EXPORT std::mutex& machine_mutex();

/// Every call that would use the driver, and initialises it, begins with this: not_initialized in a process that was forked
/// after its parent had used the driver, as with the real one.
METAPROF_EXPORT Error enter();
/// The driver's own calls begin with this: not_initialized before something has initialised it.
METAPROF_EXPORT Error enter_initialized();

METAPROF_EXPORT int device_count();
/// The machine's number of the process's device: they differ under CUDA_VISIBLE_DEVICES.
METAPROF_EXPORT int physical_device(int device);
inline const Description& device_description() { return environment().device; }

/// The device that this thread's calls go to.
METAPROF_EXPORT int current_device();
METAPROF_EXPORT Error set_current_device(int device);
/// Whether anything has been done on the device, which makes its context.
METAPROF_EXPORT bool is_active(int device);
METAPROF_EXPORT void activate(int device);

/// An attribute by CUDA's number, alike in driver and runtime; 0 for one that says nothing here.
METAPROF_EXPORT int device_attribute(int attribute, int device);
/// 16 bytes that are different for each device of the machine.
METAPROF_EXPORT void device_uuid(int device, unsigned char* bytes);

}  // namespace metaprof::emulator
