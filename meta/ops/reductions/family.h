#pragma once
// Reductions, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables covariance_operators();  // covariance.cpp
Tables extremum_operators();    // extrema.cpp
Tables norm_operators();        // norms.cpp
Tables quantile_operators();    // quantiles.cpp
Tables statistics_operators();  // statistics.cpp
Tables segment_operators();     // segments.cpp
Tables histogram_operators();   // histograms.cpp
Tables sum_operators();         // sums.cpp
Tables equality_operators();    // equality.cpp
Tables renorm_operators();      // renorm.cpp
Tables trace_operators();       // trace.cpp

inline constexpr Tables (*kReductionsFamily[])() = {
    covariance_operators, segment_operators,  histogram_operators,  extremum_operators,
    norm_operators,       quantile_operators, statistics_operators, sum_operators,
    equality_operators,   renorm_operators,   trace_operators};

}  // namespace metaprof
