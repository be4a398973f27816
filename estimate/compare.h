#pragma once
// A report against an earlier one.

#include "evidence/profiles/baseline.h"
#include "reports/profile_report.h"

namespace metaprof {

/// The figures that are compared.
BaselineFigures figures_of(const ProfileReport& report);

}  // namespace metaprof
