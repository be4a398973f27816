#pragma once
// Pooling, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables adaptive_pooling_operators();  // adaptive_pooling.cpp
Tables pooling_operators();           // pooling.cpp
Tables unpooling_operators();         // unpooling.cpp

inline constexpr Tables (*kPoolingFamily[])() = {adaptive_pooling_operators, pooling_operators,
                                                 unpooling_operators};

}  // namespace metaprof
