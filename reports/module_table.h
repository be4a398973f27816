#pragma once
// The table of modules in a profile's text.

#include <string>

#include "reports/profile_report.h"

namespace metaprof {

/// Errors: an unknown column.
std::string module_table(const ProfileReport& report, const TextOptions& options);

}  // namespace metaprof
