#pragma once
// Results of many runs: the largest inputs that fit, and a grid of options.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/option_value.h"
#include "core/units.h"
#include "estimate/results/input_row.h"

namespace metaprof {

/// All options of a run: ("precision", "amp-bf16").
using ShownOptions = std::vector<std::pair<std::string, OptionValue>>;

struct FitRow {
  ShownOptions options;
  std::optional<int64_t> largest;     ///< nothing: not even 1 fits
  bool unbounded = false;             ///< the largest that was tried fits, too
  Bytes allocated, reserved;          ///< peaks with the largest; with 1 if that does not fit
  Bytes memory;                       ///< what the run may take
  int runs = 0;                       ///< candidates that were tried
  std::vector<InputRow> inputs = {};  ///< with the largest; with the smallest if that does not fit
  std::vector<std::string> checkpoint =
      {};                 ///< the plan with which the largest fits: patterns of --checkpoint
  double recomputed = 0;  ///< FLOPs that it computes again, as a share of the step's
};

struct FitReport {
  std::string model, dimension;      ///< "batch" or "sequence"
  double margin = 0;                 ///< share of the device's memory that stays free
  bool trains = true;                ///< false: forward only
  bool planned = false;              ///< each size with the best plan of recomputation
  std::vector<std::string> columns;  ///< options that the text shows; JSON has all of them
  std::vector<FitRow> rows;
  std::string inputs;              ///< of all rows: "input_ids i64[batch,512]"
  std::vector<std::string> notes;  ///< what else is to be known of the figures
  bool all_fit() const;
};

struct SweepRow {
  ShownOptions options;
  std::string error;  ///< why there are no figures; empty: there are
  bool fits = false;
  int64_t parameter_bytes = 0, saved_bytes = 0, allocated = 0, requested = 0, reserved = 0;
  int64_t flops_forward = 0, flops_backward = 0, flops_recompute = 0;
  std::vector<InputRow> inputs = {};  ///< that were run
  std::optional<int64_t> needed;      ///< reserved without a limit; nothing: more than any device has
};

struct SweepReport {
  std::string model;
  std::vector<std::string> columns;    ///< options that CSV shows; JSON has all of them
  std::vector<std::string> differing;  ///< options that are not the same in all runs
  std::vector<SweepRow> rows;
  std::vector<std::string> notes;  ///< what else is to be known of the figures
  bool all_fit() const;
};

}  // namespace metaprof
