#pragma once
// What the libraries say their versions are. METAPROF_EMULATOR_VERSIONS decides, then the packages beside the installed
// PyTorch ("nvidia_cudnn_cu13-9.19.0.56.dist-info"), then the newest release that the stand-ins know.

#include <string>

#include "capture/emulator/machine/export.h"

namespace metaprof::emulator {

struct Version {
  int major = 0, minor = 0, patch = 0;

  /// 12040 for 12.4.
  int cuda() const { return major * 1000 + minor * 10; }
};

/// `library` is "runtime", "cublas", "cudnn", "cufft", "cusolver", "cusparse", "curand", "nvrtc", "nvjitlink", "cupti" or
/// "nccl"; `cuda` is the major release of CUDA that it is for.
METAPROF_EXPORT Version library_version(const std::string& library, int cuda);
/// The folder of packages that the PyTorch of this process lies in; empty before one is loaded.
METAPROF_EXPORT std::string packages_folder();
/// The driver is as new as the newest runtime.
constexpr int driver_version() { return 13020; }

/// The version in a folder of packages: parsed from "nvidia_NAME-VERSION.dist-info", or none (all 0). For tests.
METAPROF_EXPORT Version packaged_version(const std::string& folder, const std::string& library, int cuda);

}  // namespace metaprof::emulator
