#include "meta/platform/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "core/shape.h"

namespace metaprof {
namespace {

// ":KiB:count" pairs, summed (CublasHandlePool.cpp, parseChosenWorkspaceSize).
Bytes workspace_configuration(const std::string& text) {
  int64_t bytes = 0;
  size_t at = 0;
  while (at < text.size()) {
    int64_t size = 0, count = 0;
    int used = 0;
    if (std::sscanf(text.c_str() + at, ":%ld:%ld%n", &size, &count, &used) < 2 || size < 0 || count < 0)
      fail("CUBLAS_WORKSPACE_CONFIG: '{}' is no list of :KiB:count", text);
    bytes += multiply(multiply(size, 1024), count);
    at += size_t(used);
  }
  return {bytes};
}

Bytes lt_workspace_size(const std::string& text) {
  int64_t kibibytes = 0;
  if (std::sscanf(text.c_str(), "%ld", &kibibytes) != 1 || kibibytes < 0)
    fail("CUBLASLT_WORKSPACE_SIZE: '{}' is no number of KiB", text);
  return {multiply(kibibytes, 1024)};
}

}  // namespace

Bytes Platform::cublas_workspace() const {
  if (libraries.cublas_workspace) return *libraries.cublas_workspace;
  const bool large = framework.large_cublas_workspace_on_sm90_only ? hardware.sm == 90
                                                                   : hardware.sm >= 90 && hardware.sm < 130;
  return {large ? 33554432 : 8519680};  // 32 MiB, else 2·4 MiB + 8·16 KiB
}

Bytes Platform::cublas_lt_workspace() const {
  const Bytes own = libraries.cublas_lt_workspace.value_or(Bytes{1048576});
  const bool limited =
      framework.limits_cublas_lt_workspace && framework.cublas_lt_workspace != CublasLtWorkspace::per_call;
  return limited ? std::min(own, cublas_workspace()) : own;
}

Platform platform_named(std::string_view hardware) {
  const Hardware* known = find_hardware(hardware);
  if (!known) fail("there is no device '{}'", hardware);
  return {.hardware = *known};
}

Platform with_framework(Platform platform, FrameworkVersion version) {
  platform.framework = framework_of(version);
  platform.libraries = libraries_shipped_with(version);
  return platform;
}

Platform with_environment(Platform platform, const std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : environment) {
    if (name == "CUBLAS_WORKSPACE_CONFIG")
      platform.libraries.cublas_workspace = workspace_configuration(value);
    else if (name == "CUBLASLT_WORKSPACE_SIZE")
      platform.libraries.cublas_lt_workspace = lt_workspace_size(value);
    else
      fail(
          "the environment variable {} is not modelled; known: CUBLAS_WORKSPACE_CONFIG, "
          "CUBLASLT_WORKSPACE_SIZE",
          name);
  }
  return platform;
}

}  // namespace metaprof
