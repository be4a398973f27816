#pragma once
// Several processes on one card, from what each takes alone.

#include <optional>
#include <string>
#include <vector>

#include "core/units.h"

namespace metaprof {

struct TogetherRow {
  std::string file, what;          ///< "a.json"; the model, or the program's words
  Bytes reserved;                  ///< by its allocator, at most, if it may
  std::optional<Bytes> runs_from;  ///< the least with which it runs; nothing: the report does not say
  Bytes outside;                   ///< its CUDA context, loaded kernels, handles
  Bytes limit = {};  ///< what its allocator may take so that all fit; nothing to limit: `reserved`
  /// Of torch.cuda.set_per_process_memory_fraction: `limit` as a share of the card's memory.
  double fraction = 1;

  Bytes takes() const { return reserved + outside; }
  Bytes least() const { return runs_from.value_or(reserved) + outside; }
};

struct TogetherReport {
  std::string device, title;
  Bytes memory;       ///< the card's
  double margin = 0;  ///< share of it that stays free
  std::vector<TogetherRow> rows;
  std::vector<std::string> notes;

  Bytes usable() const { return {static_cast<int64_t>(static_cast<double>(memory.count) * (1 - margin))}; }
  Bytes takes() const;  ///< of all, if each may
  Bytes least() const;  ///< … with which each runs
  bool fits() const { return takes() <= usable(); }
  /// Only if each process is held to its limit.
  bool fits_with_limits() const { return !fits() && least() <= usable(); }
};

}  // namespace metaprof
