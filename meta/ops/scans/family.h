#pragma once
// Cumulative sums, and differences along a dimension, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables gradient_operators();  // finite_differences.cpp
Tables scan_operators();      // scans.cpp

inline constexpr Tables (*kScansFamily[])() = {gradient_operators, scan_operators};

}  // namespace metaprof
