#pragma once
// What the environment says about the emulated machine (docs/explanation/emulator.md). A value that makes no sense ends the
// process with one line on stderr and exit code 2.

#include <cstddef>
#include <string>
#include <vector>

#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

struct Description {
  std::string name, title;
  int sm = 0;  ///< compute capability, 90 = 9.0
  int multiprocessors = 0, threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
  int registers_per_multiprocessor = 65536;
  size_t shared_memory_per_block = 0;           ///< bytes, with opt-in
  size_t shared_memory_per_multiprocessor = 0;  ///< bytes
  size_t memory = 0;                            ///< bytes
  int l2_cache = 0;                             ///< bytes
  int memory_bus_bits = 0, clock_khz = 0, memory_clock_khz = 0;
};

/// Throws std::invalid_argument that says what is wrong.
METAPROF_EXPORT Description parse_description(const std::string& words);

/// When work that a stream was given is complete (clock.h).
enum class Clock {
  at_once,  ///< everything is complete the moment it is given to a stream
  late,     ///< nothing is complete before somebody waits for it
  expected  ///< work takes its time (durations.h), and so do the host's calls
};

struct Environment {
  Description device;
  int device_count = 1;
  size_t context =
      0;  ///< bytes of each device that no process can have: its context and its kernels take them
  std::string log_folder;  ///< empty: no log
  Clock clock = Clock::at_once;
  std::string cudnn;  ///< METAPROF_EMULATOR_CUDNN as it is
};

METAPROF_EXPORT const Environment& environment();

/// What a device of the machine is called wherever it is not called by its number: the bytes of device_uuid() as text.
METAPROF_EXPORT std::string device_name(int device);

/// CUDA_VISIBLE_DEVICES, numbers or beginnings of names: which of `count` devices a process sees, in its order; up to the first that is none.
std::vector<int> visible_devices(const char* value, int count);

/// Says `message` on stderr and ends the process with exit code 2.
[[noreturn]] METAPROF_EXPORT void refuse_to_run(const std::string& message);

}  // namespace metaprof::emulator
