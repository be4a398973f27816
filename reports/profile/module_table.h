#pragma once
// The table of modules of a profile.

#include "reports/profile/profile_report.h"
#include "reports/tables/figure_table.h"

namespace metaprof {

struct ModuleTable {
  FigureTable table;
  size_t hidden = 0;  ///< rows deeper than `depth`
};

/// `whole_paths`: rows have their paths, for programs; else their last segments, indented.
/// Errors: an unknown column.
ModuleTable module_table(const ProfileReport& report, const TextOptions& options, bool whole_paths);

}  // namespace metaprof
