#pragma once
// Operators over lists of tensors, which optimizers are made of, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables foreach_operators();              // foreach.cpp
Tables fused_optimizer_operators();      // fused_optimizer.cpp
Tables eight_bit_optimizer_operators();  // eight_bit_optimizer.cpp

inline constexpr Tables (*kOptimizersFamily[])() = {foreach_operators, fused_optimizer_operators,
                                                    eight_bit_optimizer_operators};

}  // namespace metaprof
