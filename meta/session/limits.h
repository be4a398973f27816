#pragma once
// Limits of what the dispatcher takes.

#include <cstddef>

namespace metaprof {

/// Of an operator's schema: a call's arguments stand on the stack.
inline constexpr size_t kMostArguments = 32;

}  // namespace metaprof
