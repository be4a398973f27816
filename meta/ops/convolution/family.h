#pragma once
// Convolutions, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables convolution_operators();  // convolution.cpp

inline constexpr Tables (*kConvolutionFamily[])() = {convolution_operators};

}  // namespace metaprof
