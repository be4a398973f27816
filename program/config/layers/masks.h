#pragma once
// Masks of causal attention, as transformers 5.17 makes them (masking_utils.py) where `is_causal` does not suffice.

#include "program/nn/module.h"

namespace metaprof::configs {

/// Which keys a query sees: itself and those before it, and of these the nearest `window` alone if it is not 0.
/// b8[batch, 1, positions, keys], one for the whole batch. `hidden`: [batch, positions, …]; `keys`: with those of a cache;
/// 0: as many as positions.
nn::Tensor causal_mask(const nn::AnyModule& module, const nn::Tensor& hidden, int64_t window = 0,
                       int64_t keys = 0);

/// What eager attention adds to its scores: 0 where a key is seen, else the least number of the type of `hidden`.
/// [batch, 1, positions, keys]
nn::Tensor additive_causal_mask(const nn::AnyModule& module, const nn::Tensor& hidden, int64_t window = 0,
                                int64_t keys = 0);

}  // namespace metaprof::configs
