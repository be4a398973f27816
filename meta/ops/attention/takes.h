#pragma once
// What calls of attention's kernels need beyond their schemas (meta/op/takes.h). Their schemas have plain tensors for
// masks and lengths that there may not be.

#include <string_view>

namespace metaprof {

/// [batch, heads, length, head].
inline constexpr std::string_view kHeadsOfForward = "query.dim == 4, key.dim == 4, value.dim == 4";
inline constexpr std::string_view kHeadsOfBackward =
    "query.dim == 4, key.dim == 4, value.dim == 4, grad_out.dim == 4, out.dim == 4";
inline constexpr std::string_view kHeadsOfCudnnBackward =
    "query.dim == 4, key.dim == 4, value.dim == 4, grad_out.dim == 4, out.dim == 4, attn_bias may be "
    "undefined, cum_seq_q may be undefined, cum_seq_k may be undefined";
inline constexpr std::string_view kHeadsOfFlashBackward =
    "query.dim == 4, key.dim == 4, value.dim == 4, grad_out.dim == 4, out.dim == 4, cum_seq_q may be "
    "undefined, cum_seq_k may be undefined";
inline constexpr std::string_view kHeadsOfEfficientBackward =
    "query.dim == 4, key.dim == 4, value.dim == 4, grad_out_.dim == 4, out.dim == 4, attn_bias may be "
    "undefined";
/// [batch, length, heads, head].
inline constexpr std::string_view kRowsOfEfficientBackward =
    "query.dim == 4, key.dim == 4, value.dim == 4, grad_out_.dim == 4, out.dim == 4, bias.dim > 0";
/// The same, or sequences one behind the other: [length, heads, head].
inline constexpr std::string_view kRowsOfForward =
    "query.dim in 3 to 4, key.dim == query.dim, value.dim == query.dim";
inline constexpr std::string_view kRowsOfBackward =
    "query.dim in 3 to 4, key.dim == query.dim, value.dim == query.dim, grad_out.dim == query.dim, out.dim "
    "== query.dim, cum_seq_q may be undefined, cum_seq_k may be undefined";

}  // namespace metaprof
