#pragma once

#include <cstdint>

namespace metaprof {

/// The number of pieces of `size` that hold `amount`; both are positive.
constexpr int64_t divide_up(int64_t amount, int64_t size) { return (amount + size - 1) / size; }
/// The smallest multiple of `size` that holds `amount`.
constexpr int64_t align_up(int64_t amount, int64_t size) { return divide_up(amount, size) * size; }

}  // namespace metaprof
