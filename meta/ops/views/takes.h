#pragma once
// What calls that take tensors apart need beyond their schemas (meta/op/takes.h).

#include <string_view>

namespace metaprof {

inline constexpr std::string_view kSplitTakes = "self.dim > 0, results == self.size(dim) / split_size";
inline constexpr std::string_view kUnbindTakes = "self.dim > 0, results == self.size(dim)";

}  // namespace metaprof
