#pragma once
// Options of which each may have several values: every combination is one run of steps.

#include <string>
#include <vector>

#include "meta/step/options.h"

namespace metaprof {

/// An option and its values, as somebody typed them.
struct GridValues {
  const RunOption* option;
  std::vector<std::string> values;
};

struct Grid {
  RunOptions common;  ///< what all runs share
  std::vector<GridValues> lists;

  /// "1,2,4" and, of numbers, "1:8" (1, 2 … 8). Errors: a value that the option does not take, an empty range.
  void add(const RunOption& option, std::string_view text);
  bool has(std::string_view name) const;
};

/// All combinations, the last option changing fastest: the device, the step, then the inputs, the batch last.
/// Errors: more than 100,000.
std::vector<RunOptions> combinations(const Grid& grid);

/// Names of the options that a table of these runs should show: `always`, and those that are not as in
/// `usual` in some run.
std::vector<std::string> telling_options(const std::vector<RunOptions>& runs, const RunOptions& usual,
                                         std::vector<std::string> always);

/// All options of a run with the device first.
std::vector<std::pair<std::string, OptionValue>> shown_options(const RunOptions& run);

}  // namespace metaprof
