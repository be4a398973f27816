#pragma once
// What a process runs on: hardware, libraries and framework, each a value of its own, and the questions whose
// answers need more than one of them.

#include <map>

#include "meta/platform/framework.h"
#include "meta/platform/hardware.h"
#include "meta/platform/libraries.h"

namespace metaprof {

struct Platform {
  Hardware hardware;
  Libraries libraries = {};
  Framework framework = {};

  Device device() const { return {hardware.type, 0}; }
  /// Bytes of the workspace of a cuBLAS handle.
  Bytes cublas_workspace() const;
  /// Bytes that cuBLASLt works in, where that memory is its own.
  Bytes cublas_lt_workspace() const;
};

/// The built-in hardware of this name, with 2.11. Error: there is none.
Platform platform_named(std::string_view hardware);
/// The platform with this version of the framework, and the libraries that come with it unless those of the
/// machine are known.
Platform with_framework(Platform platform, FrameworkVersion version);

/// The platform with what environment variables say, as far as its version of the framework reads them: others
/// have no effect. The allocator's settings are read by who makes an allocator. Errors: a variable that is not
/// modelled, a value that the framework would not understand.
Platform with_environment(Platform platform, const std::map<std::string, std::string>& environment);

}  // namespace metaprof
