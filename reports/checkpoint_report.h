#pragma once
// What of a step to compute again so that it fits in a budget: what `metaprof plan` shows.

#include <string>
#include <vector>

#include "core/units.h"

namespace metaprof {

/// Modules that are alike and computed again.
struct RecomputedRow {
  std::string type;
  std::vector<std::string> patterns;
  int64_t count = 0, of = 0;  ///< so many of them, of all that there are
  Bytes saved;                ///< what the forward does not keep
  Flops flops;                ///< of computing them again in a step
};

/// A plan, with the figures of a step that was run with it.
struct CheckpointRow {
  std::string strategy;
  Bytes allocated, reserved;     ///< peaks, without a limit
  Flops recompute_flops;         ///< in a step, as the framework counts
  double recompute_seconds = 0;  ///< on an ideal device
  bool holds = false;            ///< `allocated` is within the budget
  double gap =
      0;  ///< share of its cost by which the strategy's own problem may have a cheaper answer; 0: none
  std::vector<std::string> patterns;  ///< of --checkpoint; empty: nothing is computed again
  std::vector<RecomputedRow> recomputed;
};

struct CheckpointReport {
  std::string model, device;
  Bytes budget;
  Bytes state;      ///< parameters, buffers and inputs: no plan needs less
  Bytes elsewhere;  ///< what the step takes where nothing of the forward is kept: in the optimizer, as a rule
  CheckpointRow plain;              ///< nothing is computed again
  Flops flops;                      ///< of a step without recomputation
  double seconds = 0;               ///< the same, on an ideal device
  bool candidates = false;          ///< something saves memory when it is computed again
  std::vector<CheckpointRow> rows;  ///< one for each strategy; none where `elsewhere` exceeds the budget
  int runs = 0;                     ///< steps that were run to find them
  std::vector<std::string> notes;

  /// The plan to take: of those that hold the cheapest, else the one with the smallest peak.
  const CheckpointRow& best() const;
};

/// Where nothing holds one line says why.
std::string checkpoint_text(const CheckpointReport& report);
/// {"schema": "metaprof.plan", "schema_version": 1, …, "strategy", "budget", "peak", "reserved",
/// "recompute_flops", "holds", "checkpoint": [patterns], …}
std::string checkpoint_json(const CheckpointReport& report);

}  // namespace metaprof
