#pragma once
// What the emulated device's libraries wrote of one process (docs/explanation/emulator.md, "The log").

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace metaprof {

struct EmulatorLog {
  int64_t planned = 0;        ///< kinds of convolutions whose workspace cuDNN said
  int64_t unplanned = 0;      ///< those of which it was asked in vain: they count as 0
  int64_t communicators = 0;  ///< of NCCL, that the process joined: their buffers count as 0
  /// Functions that the stand-ins lack and that were called: "libcudart.so.13 cudaMallocArray".
  std::vector<std::string> missing;
};

/// Nothing in it if there is no such file. A last line that was cut off is left out.
EmulatorLog read_emulator_log(const std::filesystem::path& file);

}  // namespace metaprof
