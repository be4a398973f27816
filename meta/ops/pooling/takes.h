#pragma once
// What calls of poolings need beyond their schemas (meta/op/takes.h).

#include <cstddef>
#include <string_view>

namespace metaprof {

/// Of operators that put values at the places that a pooling of so many dimensions kept.
template <size_t dims>
inline constexpr std::string_view kPlacesTake =
    dims == 2 ? "indices.dim >= 3, indices.sizes == grad_output.sizes"
              : "indices.dim >= 4, indices.sizes == grad_output.sizes";

}  // namespace metaprof
