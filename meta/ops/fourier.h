#pragma once
// Fourier transforms as plain functions, for what is made of them.

#include "meta/op/call.h"

namespace metaprof {

/// Complex to complex, real to complex, complex to real over these (wrapped) dimensions.
Tensor fft_c2c(const Tensor& self, SizesView dims, int64_t normalization, bool forward);
Tensor fft_r2c(const Tensor& self, SizesView dims, int64_t normalization, bool onesided);
Tensor fft_c2r(const Tensor& self, SizesView dims, int64_t normalization, int64_t last_size);

}  // namespace metaprof
