#pragma once
// Options of which each may have several values: every combination is one run of steps.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/profile_options.h"

namespace metaprof {

struct Grid {
  std::string model;
  std::vector<std::string> device{"h200"}, precision{"fp32"}, optimizer{"adamw"}, optimizer_impl{"default"};
  std::vector<std::string> checkpoint;  ///< "none": no modules
  std::vector<int> batch, sequence, accumulate{1};
  ProfileOptions common;  ///< what all runs share
};

/// Options as `profile` has them, with lists for the values above.
void add_grid_options(CLI::App& command, Grid& grid);

/// All combinations, the last option changing fastest. Errors: more than 100,000.
std::vector<ProfileOptions> combinations(const Grid& grid);

}  // namespace metaprof
