#pragma once
// Random numbers, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables distribution_operators();  // distributions.cpp
Tables dropout_operators();       // dropout.cpp
Tables random_operators();        // random.cpp

inline constexpr Tables (*kRandomFamily[])() = {distribution_operators, dropout_operators, random_operators};

}  // namespace metaprof
