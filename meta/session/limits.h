#pragma once
// Limits of what the dispatcher takes.

#include <cstddef>
#include <cstdint>

namespace metaprof {

/// Of an operator's schema: a call's arguments stand on the stack.
inline constexpr size_t kMostArguments = 32;
/// Of an integer that a body reads, larger ones count as this: no tensor has so many elements, and sums of some of them
/// stay within 64 bits. Lists hold no larger ones.
inline constexpr int64_t kLargestInteger = int64_t{1} << 61;
/// Tensors that one call makes: each takes memory of the host.
inline constexpr int64_t kMostResults = 1 << 20;

}  // namespace metaprof
