#pragma once
// Whether a step fits a device.

#include <optional>
#include <string>

#include "core/units.h"
#include "profiler/allocator/phases.h"

namespace metaprof {

/// What the allocator reserves at most and what lies outside of it must not exceed the device's memory less the
/// margin.
struct Verdict {
  std::string device;  ///< "h200"
  bool fits = false;
  std::string ended =
      {};                 ///< what ended the program, so that more may come than was seen; empty: nothing did
  Bytes reserved = {};    ///< at most; where memory runs out, without the limit
  bool at_least = false;  ///< memory runs out even without the limit: `reserved` is the device's memory
  Bytes outside = {};     ///< the CUDA context, loaded kernels, handles
  double margin = 0;      ///< share of the device's memory that is to stay free
  Bytes memory = {};      ///< the device's

  Bytes kept_free() const { return {static_cast<int64_t>(static_cast<double>(memory.count) * margin)}; }
  /// What stays free, or, negative, what is missing.
  Bytes left() const { return memory - reserved - outside - kept_free(); }
};

/// The verdict on a run. `device`: its name and memory, what lies outside the allocator, the margin. `needed`: where memory
/// runs out, what would be reserved without a limit; nothing: memory runs out all the same.
Verdict judge(Verdict device, const Phases& phases, std::optional<Bytes> needed);

}  // namespace metaprof
