#pragma once
// What decides a program's figures on this machine, as a Python with PyTorch says it (recorder/selftest/machine.py).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "meta/platform/hardware.h"

namespace metaprof {

struct Machine {
  std::string python, torch, cuda;  ///< versions, "2.11.0+cu130" and "13.0"
  std::string driver;               ///< "580.82.07"; empty: nobody says it
  int64_t cudnn = 0;                ///< 91900 is 9.19.0; 0: not known
  std::string cudnn_library;        ///< the file that came with PyTorch; empty: none did
  std::optional<Hardware> device;   ///< the first that PyTorch sees; nothing: it sees none
};

/// `folder`: for what it prints. Errors: the interpreter cannot be run; it has no PyTorch, or one that is built for the CPU
/// only.
Machine machine_of(const std::string& python, const std::filesystem::path& folder);

/// The text of a device file (meta/platform/files/device_file.h) of it.
std::string device_file_of(const Hardware& hardware);

}  // namespace metaprof
