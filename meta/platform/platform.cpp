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

// As c10::utils::check_env reads a switch: anything but 0 and 1 says nothing.
bool is(const std::string& value, const char* what) { return value == what; }

// What the environment says of the workspaces of matrix products, as far as this version asks it.
void share_workspaces(Framework& framework, const std::map<std::string, std::string>& environment) {
  const auto value_of = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  if (framework.asks_whether_to_keep_workspaces && is(value_of("TORCH_CUBLAS_WORKSPACE_CACHE"), "1")) {
    framework.keeps_cublas_workspaces = true;
    framework.cublas_lt_workspace = CublasLtWorkspace::shared_with_cublas;
  }
  if (!framework.asks_whether_to_share_workspaces || !framework.keeps_cublas_workspaces) return;
  const std::string unified = value_of("TORCH_CUBLASLT_UNIFIED_WORKSPACE");
  if (is(unified, "1")) framework.cublas_lt_workspace = CublasLtWorkspace::shared_with_cublas;
  if (is(unified, "0") && framework.cublas_lt_workspace == CublasLtWorkspace::shared_with_cublas)
    framework.cublas_lt_workspace = CublasLtWorkspace::kept;
}

// Variables that decide no memory of a run, or whose part is done elsewhere: the allocator's settings, and
// which implementations are chosen when the framework is imported.
bool is_read_elsewhere(const std::string& name) {
  constexpr std::string_view kNames[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
                                         "TORCH_CUBLASLT_UNIFIED_WORKSPACE", "TORCH_CUBLAS_WORKSPACE_CACHE",
                                         "TORCH_DISABLE_NATIVE_AOT"};
  return std::ranges::find(kNames, name) != std::end(kNames);
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
  if (!platform.libraries.of_the_machine) platform.libraries = libraries_shipped_with(version);
  return platform;
}

Platform with_environment(Platform platform, const std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : environment) {
    if (name == "CUBLAS_WORKSPACE_CONFIG")
      platform.libraries.cublas_workspace = workspace_configuration(value);
    else if (name == "CUBLASLT_WORKSPACE_SIZE")
      platform.libraries.cublas_lt_workspace = lt_workspace_size(value);
    else if (name == "TORCH_DISABLE_NATIVE_JIT")  // torch/_native: implementations in Triton, from 2.13 on
      platform.framework.has_kernel_for_outer_products &= !is(value, "1");
    else if (!is_read_elsewhere(name))
      fail(
          "the environment variable {} is not modelled; known: CUBLAS_WORKSPACE_CONFIG, "
          "CUBLASLT_WORKSPACE_SIZE, TORCH_CUBLASLT_UNIFIED_WORKSPACE, TORCH_CUBLAS_WORKSPACE_CACHE, "
          "TORCH_DISABLE_NATIVE_JIT, TORCH_DISABLE_NATIVE_AOT, PYTORCH_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF",
          name);
  }
  share_workspaces(platform.framework, environment);
  return platform;
}

}  // namespace metaprof
