#pragma once
// Convolutions, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables convolution_operators();  // convolution.cpp
Tables deformable_operators();   // deformable.cpp
Tables nnpack_operators();       // convolution_nnpack.cpp

inline constexpr Tables (*kConvolutionFamily[])() = {convolution_operators, deformable_operators,
                                                     nnpack_operators};

}  // namespace metaprof
