#pragma once
// A memory snapshot that torch.cuda.memory._dump_snapshot wrote: the peaks of what it has of device 0.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "profiler/allocator/phases.h"
#include "validation/results/check_result.h"

namespace metaprof {

/// True if the file's name says that it is one (`*.pickle`, `*.pkl`).
bool is_snapshot_file(const std::filesystem::path& path);

struct Snapshot {
  std::filesystem::path path;
  size_t events = 0;  ///< requests, returns, segments
  int64_t requested_peak = 0, reserved_peak = 0;
  /// The history has the bytes that were asked for. Those of a block follow from the addresses; nothing: they
  /// do not, as blocks were made before the history began, or by other rules (max_split_size,
  /// roundup_power2_divisions).
  std::optional<int64_t> allocated_peak;
};

/// Errors: as Pickle; no dictionary of segments and device_traces; a history without requests; returns of
/// more than there is.
Snapshot read_snapshot(const std::filesystem::path& path);

/// The peaks of the whole run. There are no rows of phases.
CheckResult compare(const Snapshot& snapshot, const Phases& phases);

}  // namespace metaprof
