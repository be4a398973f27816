#pragma once
// Normalizations, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables batch_norm_operators();   // batch_norm.cpp
Tables batch_norm_variants();    // batch_norm_variants.cpp
Tables group_norm_operators();   // group_norm.cpp
Tables layer_norm_operators();   // layer_norm.cpp
Tables rms_norm_operators();     // rms_norm.cpp
Tables softmax_operators();      // softmax.cpp
Tables weight_norm_operators();  // weight_norm.cpp

inline constexpr Tables (*kNormalizationFamily[])() = {
    batch_norm_operators, batch_norm_variants, group_norm_operators, layer_norm_operators,
    rms_norm_operators,   softmax_operators,   weight_norm_operators};

}  // namespace metaprof
