#pragma once
// Images at other sizes, in other layouts, with other borders, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables grid_sampling_operators();  // grid_sampling.cpp
Tables image_layout_operators();   // image_layout.cpp
Tables padding_operators();        // padding.cpp
Tables region_operators();         // regions.cpp
Tables upsampling_operators();     // upsampling.cpp

inline constexpr Tables (*kImagesFamily[])() = {grid_sampling_operators, image_layout_operators,
                                                padding_operators, region_operators, upsampling_operators};

}  // namespace metaprof
