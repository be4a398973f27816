#pragma once
// Fourier transforms as plain functions, for what is made of them.

#include "meta/session/call.h"

namespace metaprof {

/// How the sum is scaled, by the numbers of fft_norm_mode.
enum Normalization : int64_t { none = 0, by_root_n = 1, by_n = 2 };

/// Complex to complex, real to complex, complex to real over these (wrapped) dimensions.
Tensor fft_c2c(const Tensor& self, SizesView dims, int64_t normalization, bool forward);
Tensor fft_r2c(const Tensor& self, SizesView dims, int64_t normalization, bool onesided);
Tensor fft_c2r(const Tensor& self, SizesView dims, int64_t normalization, int64_t last_size);

}  // namespace metaprof
