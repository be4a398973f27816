#pragma once
// Calls in a trace that are of no operator.

#include <string_view>

namespace metaprof {

/// The program has the allocator give back what it has cached (torch.cuda.empty_cache).
inline constexpr std::string_view kEmptyCache = "step::empty_cache";

}  // namespace metaprof
