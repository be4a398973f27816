#pragma once
// What happened so far, by device. Counting never blocks.

#include <cstdint>

#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

enum class Counter {
  memory,         ///< bytes in use
  memory_peak,    ///< bytes
  kernels,        ///< launches
  reads,          ///< copies from the device to the host
  read_bytes,     //
  writes,         ///< copies from the host to the device
  written_bytes,  //
  collectives,    ///< calls of NCCL that move data
  missing,        ///< calls of functions that no stand-in has
  count_,
};

/// Adds to a counter of the thread's current device.
METAPROF_EXPORT void count(Counter counter, uint64_t by = 1);
/// Bytes of a device in use.
void set_memory(int device, uint64_t bytes);

}  // namespace metaprof::emulator

METAPROF_CUDA const char* metaprof_emulator_version();
/// A counter by its name (docs/explanation/emulator.md); device -1: all devices. 2^64 - 1 for an unknown name or device.
METAPROF_CUDA uint64_t metaprof_emulator_count(const char* what, int device);
METAPROF_CUDA void metaprof_emulator_reset_peak(int device);
