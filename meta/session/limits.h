#pragma once
// Limits of what the dispatcher takes.

#include <cstddef>
#include <cstdint>

namespace metaprof {

/// Of an operator's schema: a call's arguments stand on the stack.
inline constexpr size_t kMostArguments = 32;
/// Tensors that one call makes: each takes memory of the host.
inline constexpr int64_t kMostResults = 1 << 20;

}  // namespace metaprof
