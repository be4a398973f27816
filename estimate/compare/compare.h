#pragma once
// A report against an earlier one.

#include "estimate/results/profile.h"
#include "validation/profiles/baseline.h"

namespace metaprof {

/// The figures that are compared.
BaselineFigures figures_of(const ProfileReport& report);

}  // namespace metaprof
