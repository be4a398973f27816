#pragma once
// What calls of recurrent networks need beyond their schemas (meta/op/takes.h): products of these sizes fit in 64 bits.

#include <string_view>

namespace metaprof {

inline constexpr std::string_view kTakenByLayers =
    "input.dim in 2 to 3, hx.dim == 3, weight.length > 0, weight.dim > 0, weight_stride0 > 0, mode in 0 to "
    "3, num_layers in "
    "1 to 1024, hidden_size in 1 to 16777216, proj_size in 0 to 16777216";
inline constexpr std::string_view kTakenToFlatten =
    "weight_arr.length > 0, weight_stride0 > 0, mode in 0 to 3, num_layers in 1 to 1024, input_size in 0 to "
    "16777216, hidden_size in 1 to 16777216, proj_size in 0 to 16777216";
/// [steps, batch, size].
inline constexpr std::string_view kTakenByOneLayer =
    "input.dim == 3, hx_.dim in 2 to 3, hidden_size in 1 to 16777216, num_layers in 1 to 1024";
inline constexpr std::string_view kTakenByOneLayerBackward = "input.dim == 3, hidden_size in 1 to 16777216";

}  // namespace metaprof
