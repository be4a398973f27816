#pragma once
// Whether a step fits: the first line of every report.

#include <string>

#include "core/units.h"

namespace metaprof {

/// What the allocator reserves at most and what lies outside of it must not exceed the device's memory less the
/// margin.
struct Verdict {
  std::string device;  ///< "h200"
  bool fits = false;
  Bytes reserved = {};    ///< at most; where memory runs out, without the limit
  bool at_least = false;  ///< memory runs out even without the limit: `reserved` is the device's memory
  Bytes outside = {};     ///< the CUDA context, loaded kernels, handles
  double margin = 0;      ///< share of the device's memory that is to stay free
  Bytes memory = {};      ///< the device's

  Bytes kept_free() const { return {static_cast<int64_t>(static_cast<double>(memory.count) * margin)}; }
  /// What stays free, or, negative, what is missing.
  Bytes left() const { return memory - reserved - outside - kept_free(); }
};

/// "FITS h200: needs 1.2 GiB + 691.0 MiB outside the allocator of 139.8 GiB, margin 0 %; 137.9 GiB stay free"
std::string verdict_line(const Verdict& verdict);

}  // namespace metaprof
