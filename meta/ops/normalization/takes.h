#pragma once
// What calls of batch norms need beyond their schemas (meta/op/takes.h). Of nothing there are no statistics.

#include <string_view>

namespace metaprof {

inline constexpr std::string_view kTakenByBatchNorm = "input.dim >= 2, input.numel > 0 if training";
inline constexpr std::string_view kTakenByNative =
    "input.dim >= 2, input.numel > 0 if training, running_mean given unless training, running_var given "
    "unless training";
inline constexpr std::string_view kTakenByStatistics = "input.dim >= 2, input.numel > 0";
inline constexpr std::string_view kTakenWithoutStatistics =
    "input.dim >= 2, running_mean given, running_var given";
inline constexpr std::string_view kTakenByNativeBackward =
    "input.dim >= 2, input.numel > 0, grad_out.dim == input.dim, running_mean given unless train, "
    "running_var given unless train, save_mean given if train, save_invstd given if train";
inline constexpr std::string_view kTakenByEitherBackward =
    "input.dim >= 2, input.numel > 0, grad_out.dim == input.dim, running_mean given unless update, "
    "running_var given unless update, save_mean given if update, save_var given if update";

}  // namespace metaprof
