#pragma once
// What of a step to recompute so that it fits in a budget.

#include <algorithm>
#include <optional>
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
  double recompute_seconds = 0;  ///< on an ideal device, and of `over_bus` on an ideal bus
  Bytes over_bus;                ///< to and from the host in a step, for what is saved there
  bool holds = false;            ///< `allocated` is within the budget
  /// By what share of its cost an answer of the strategy's integer programmes may be dearer than the cheapest, the
  /// largest of those solved for this row; nothing: none was solved.
  std::optional<double> gap;
  std::vector<std::string> patterns;  ///< of --checkpoint; empty: nothing is computed again
  std::vector<RecomputedRow> recomputed;
};

/// A call whose results could be kept when its module is computed again.
struct CandidateCall {
  std::string op;
  int64_t number = 0;  ///< of that operator's calls in one module, from 0
  Bytes bytes;
  Flops flops;
  double seconds = 0;
};

/// Modules that are alike, with what strategies are told of one of them.
struct CandidateRow {
  std::string type;
  std::vector<std::string> modules;  ///< paths
  Bytes saved, input;  ///< what it does not keep when it is computed again; what it keeps all the same
  Flops flops;
  double seconds = 0;
  bool in_list = false;  ///< each hands one tensor on to the next
  std::vector<CandidateCall> calls;
};

/// The call that takes most with its operands and what is alive then in every plan, and every plan makes it.
struct LargestCall {
  std::string op, module;  ///< module "": the model itself, or what is called after it
  Bytes needs;
};

struct CheckpointReport {
  std::string model, device;
  Bytes budget;
  Bytes state;      ///< parameters, buffers and inputs: no plan needs less
  Bytes elsewhere;  ///< what the step takes where nothing of the forward is kept: in the optimizer, as a rule
  LargestCall largest_call;
  CheckpointRow plain;              ///< nothing is computed again
  Flops flops;                      ///< of a step without recomputation
  double seconds = 0;               ///< the same, on an ideal device
  bool candidates = false;          ///< something saves memory when it is computed again
  std::vector<CheckpointRow> rows;  ///< one for each strategy; none where least() exceeds the budget
  std::vector<CheckpointRow>
      curve;  ///< by falling peak, each dearer than the one before; empty: not asked for
  std::vector<CandidateRow> costs;  ///< empty: not asked for
  bool has_budget = true;           ///< false: only the curve was asked for
  int runs = 0;                     ///< steps that were run to find them
  std::vector<std::string> notes;

  /// No plan takes less.
  Bytes least() const { return std::max(elsewhere, largest_call.needs); }
  /// The plan to take: of those that hold the cheapest, else the one with the smallest peak. FLOPs computed again
  /// decide; where something goes over the bus, which takes no FLOPs, time does.
  const CheckpointRow& best() const;
  /// A plan keeps something in the host's memory.
  bool uses_bus() const;
};

}  // namespace metaprof
