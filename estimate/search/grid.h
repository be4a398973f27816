#pragma once
// Options of which each may have several values: every combination is one run of steps.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimate/prepare/model.h"
#include "step/options.h"

namespace metaprof {

/// An option and its values, as somebody typed them.
struct GridValues {
  const RunOption* option;
  std::vector<std::string> values;
};

struct Grid {
  RunOptions common;  ///< what all runs share
  std::vector<GridValues> lists;

  /// "1,2,4" and, of numbers, "1:8" (1, 2 … 8); of devices "all", the known cards. Errors: a value that the option does not take, an empty range.
  void add(const RunOption& option, std::string_view text);
  bool has(std::string_view name) const;
};

/// All combinations, the last option changing fastest: the device, the step, then the inputs, the batch last.
/// Errors: more than 100,000.
std::vector<RunOptions> combinations(const Grid& grid);

/// The model for all combinations. A module of the user's Python is captured with the first one's inputs and precision; the
/// others change that capture. Errors: as read_model.
Model read_model_for(const Grid& grid, const std::string& named);

/// A part of the combinations, for sweeps that several machines share: the index-th of count stretches of them.
struct Shard {
  int64_t index = 1, count = 1;  ///< 1 ≤ index ≤ count

  /// "3/16". Errors: anything else.
  static Shard from_text(std::string_view text);
  /// Of so many combinations those from `first` up to `last`, which is not one of them. Lengths differ by one at most, and
  /// the shards in order are all of them, so tables of shards are joined by appending their rows.
  std::pair<size_t, size_t> range(size_t combinations) const;
};

/// Names of the options that a table of these runs should show: `always`, and those that are not as in
/// `usual` in some run.
std::vector<std::string> telling_options(const std::vector<RunOptions>& runs, const RunOptions& usual,
                                         std::vector<std::string> always);

/// All options of a run with the device first.
std::vector<std::pair<std::string, OptionValue>> shown_options(const RunOptions& run);

}  // namespace metaprof
