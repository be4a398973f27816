#pragma once

namespace metaprof::emulator {

/// Bytes of an element of a cudaDataType_t, as far as products of matrices have it.
constexpr int bytes_of_data_type(int type) {
  constexpr int r64f = 1, r16f = 2, c32f = 4, c64f = 5, r16bf = 14, first_of_8_bits = 28;
  if (type == r16f || type == r16bf) return 2;
  if (type == r64f || type == c32f || type == c64f) return 8;
  return type >= first_of_8_bits ? 1 : 4;
}

}  // namespace metaprof::emulator
