#pragma once
// Elementwise operators, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables activation_operators();         // activations.cpp
Tables alias_operators();              // aliases.cpp
Tables angle_operators();              // angles.cpp
Tables binary_operators();             // binary.cpp
Tables choice_operators();             // choice.cpp
Tables comparison_operators();         // comparisons.cpp
Tables fake_quantization_operators();  // fake_quantization.cpp
Tables gated_activation_operators();   // gated_activations.cpp
Tables power_operators();              // pow.cpp
Tables special_operators();            // special.cpp
Tables unary_operators();              // unary.cpp

inline constexpr Tables (*kPointwiseFamily[])() = {activation_operators,
                                                   alias_operators,
                                                   angle_operators,
                                                   binary_operators,
                                                   choice_operators,
                                                   comparison_operators,
                                                   fake_quantization_operators,
                                                   gated_activation_operators,
                                                   power_operators,
                                                   special_operators,
                                                   unary_operators};

}  // namespace metaprof
