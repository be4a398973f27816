#pragma once
// deepseek's attention: queries, keys and values are made of narrow latents, and a part of each head is turned by
// its position.

#include "program/config/layers/decoder.h"

namespace metaprof::configs {

struct LatentPlan {
  int64_t hidden = 0, heads = 0;
  std::optional<int64_t> query_rank;                       ///< nothing: queries are made directly
  int64_t key_rank = 0, plain = 0, turned = 0, value = 0;  ///< widths: of a head's parts
  bool bias = false, interleaved = true, complex = false;
  double dropout = 0, scale = 1;
};

/// The table of positions as complex numbers, c64[1, positions, width/2] (deepseek_v2), in the first of the pair.
/// A cache holds latents.
AttentionPart latent_attention(const Place& place, const DecoderPlan& decoder, const LatentPlan& plan,
                               int64_t index);

}  // namespace metaprof::configs
