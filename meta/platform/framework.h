#pragma once
// A version of PyTorch as what it does differently from others: named behaviours that kernels and the engine
// ask. Nobody else compares versions.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace metaprof {

struct FrameworkVersion {
  int major = 2, minor = 11, patch = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): in what is generated
  friend auto operator<=>(FrameworkVersion, FrameworkVersion) = default;
};

/// "2.11", "2.11.0", "2.11.0+cu130", "2.12.0a0+git1234": what stands behind the numbers is passed over. Errors:
/// anything else, and versions before the oldest that is known (2.6).
FrameworkVersion parse_framework_version(std::string_view text);
/// "2.11.0"
std::string to_string(FrameworkVersion version);

/// Whose memory cuBLASLt works in (aten/src/ATen/cuda/CUDABlas.cpp, getCUDABlasLtWorkspaceSize and its callers).
enum class CublasLtWorkspace : uint8_t {
  kept,                ///< its own, per handle and stream, for the rest of the process
  shared_with_cublas,  ///< that of the cuBLAS handle
  per_call,            ///< its own, given back when the call ends; cuBLAS is not asked for any
};

/// In the order of versions, an own line for each behaviour: what it means, and where it is written.
struct Framework {
  FrameworkVersion version;

  /// A cuBLAS handle keeps one workspace per stream; else every call takes one and gives it back
  /// (aten/src/ATen/cuda/CublasHandlePool.cpp; until 2.14).
  bool keeps_cublas_workspaces = true;
  /// cuBLAS's larger workspace is for compute capability 9.0 alone; else for all of 9, 10, 11 and 12
  /// (CublasHandlePool.cpp, parseChosenWorkspaceSize; until 2.14).
  bool large_cublas_workspace_on_sm90_only = true;
  /// Kept until 2.11, shared from 2.12 on, per call from 2.15 on.
  CublasLtWorkspace cublas_lt_workspace = CublasLtWorkspace::kept;
};

/// How this version behaves. A version that is newer than all that are known behaves as the newest of these.
Framework framework_of(FrameworkVersion version);

/// The newest version whose behaviours are known.
inline constexpr FrameworkVersion kNewestFramework = {.major = 2, .minor = 11, .patch = 0};

}  // namespace metaprof
