#pragma once
// Random numbers, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables dropout_operators();  // dropout.cpp
Tables random_operators();   // random.cpp

inline constexpr Tables (*kRandomFamily[])() = {dropout_operators, random_operators};

}  // namespace metaprof
