#pragma once
// Reductions, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables covariance_operators();    // covariance.cpp
Tables extremum_operators();      // extrema.cpp
Tables norm_operators();          // norms.cpp
Tables quantile_operators();      // quantiles.cpp
Tables statistics_operators();    // statistics.cpp
Tables sum_operators();           // sums.cpp
Tables whole_tensor_operators();  // wholes.cpp

inline constexpr Tables (*kReductionsFamily[])() = {
    covariance_operators, extremum_operators, norm_operators,        quantile_operators,
    statistics_operators, sum_operators,      whole_tensor_operators};

}  // namespace metaprof
