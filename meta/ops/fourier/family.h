#pragma once
// Fourier transforms, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables fourier_operators();            // fourier.cpp
Tables fourier_composite_operators();  // fourier_composite.cpp
Tables spectrogram_operators();        // spectrograms.cpp

inline constexpr Tables (*kFourierFamily[])() = {fourier_operators, fourier_composite_operators,
                                                 spectrogram_operators};

}  // namespace metaprof
