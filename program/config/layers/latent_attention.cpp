#include "program/config/layers/latent_attention.h"

#include <memory>

namespace metaprof::configs {
namespace {

// x[..., begin::2] of a last dimension
Tensor every_second(const Tensor& x, int64_t begin) {
  return nn::call("slice.Tensor", x, x.dim() - 1, begin, nn::kEnd, 2);
}

// modeling_deepseek_v3.py, apply_rotary_pos_emb_interleave
Tensor turned_pairs(const Tensor& even, const Tensor& odd, const Tensor& cosines, const Tensor& sines) {
  Tensor first = even * cosines;
  first = std::move(first) - odd * sines;
  Tensor second = odd * cosines;
  second = std::move(second) + even * sines;
  return nn::cat({first, second}, -1);
}

Rotation rotated_pairs(const Tensor& query, const Tensor& key, const Rotation& rotation) {
  const int64_t half = rotation.first.size(-1) / 2;
  const Tensor cosines = nn::unsqueeze(nn::slice(rotation.first, 2, 0, half), 1);
  const Tensor sines = nn::unsqueeze(nn::slice(rotation.second, 2, 0, half), 1);
  const Tensor query_even = every_second(query, 0), query_odd = every_second(query, 1);
  const Tensor key_even = every_second(key, 0), key_odd = every_second(key, 1);
  Tensor turned_query = turned_pairs(query_even, query_odd, cosines, sines);
  return {std::move(turned_query), turned_pairs(key_even, key_odd, cosines, sines)};
}

// modeling_deepseek_v2.py, apply_rotary_emb
Tensor as_complex(const Tensor& x) {
  const Sizes sizes{x.size(0), x.size(1), x.size(2), -1, 2};
  return nn::call("view_as_complex", nn::reshape(nn::to(x, DType::f32), sizes));
}

Tensor as_real(Tensor complex, const Tensor& like) {
  Tensor real = nn::flatten(nn::call("view_as_real", std::move(complex)), 3);
  return nn::call("type_as", std::move(real), like);
}

Rotation rotated_complex(const Tensor& query, const Tensor& key, const Tensor& table) {
  const Tensor query_numbers = as_complex(query);
  const Tensor key_numbers = as_complex(key);
  const Tensor angles = nn::unsqueeze(table, 1);
  Tensor turned_query = as_real(query_numbers * angles, query);
  return {std::move(turned_query), as_real(key_numbers * angles, key)};
}

struct LatentAttention : nn::Module<LatentAttention> {
  LatentAttention(const Place& place, const DecoderPlan& decoder, const LatentPlan& plan, int64_t index)
      : Module(place, decoder.name.type("Attention")),
        plan(plan),
        cache(decoder.cache),
        layer(static_cast<size_t>(index)) {
    const int64_t queries = plan.heads * (plan.plain + plan.turned);
    const std::string norm = decoder.name.type("RMSNorm");
    if (plan.query_rank) {
      q_a_proj.emplace(child("q_a_proj"), plan.hidden, *plan.query_rank, plan.bias);
      q_a_layernorm.emplace(child("q_a_layernorm"), norm, *plan.query_rank, 1e-6);
      q_b_proj.emplace(child("q_b_proj"), *plan.query_rank, queries, false);
    } else {
      q_proj.emplace(child("q_proj"), plan.hidden, queries, false);
    }
    kv_a_proj.emplace(child("kv_a_proj_with_mqa"), plan.hidden, plan.key_rank + plan.turned, plan.bias);
    kv_a_layernorm.emplace(child("kv_a_layernorm"), norm, plan.key_rank, 1e-6);
    kv_b_proj.emplace(child("kv_b_proj"), plan.key_rank, plan.heads * (plan.plain + plan.value), false);
    o_proj.emplace(child("o_proj"), plan.heads * plan.value, plan.hidden, plan.bias);
  }

  Tensor forward(Tensor hidden, Rotation rotation, Tensor mask) {
    const int64_t batch = hidden.size(0), length = hidden.size(1);
    Tensor queries = q_proj ? (*q_proj)(hidden) : (*q_b_proj)((*q_a_layernorm)((*q_a_proj)(hidden)));
    queries = split_heads(queries, plan.plain + plan.turned);
    const std::vector<Tensor> query_parts = nn::split(queries, Sizes{plan.plain, plan.turned}, -1);
    Tensor query_turned = query_parts[1];
    const Tensor compressed = (*kv_a_proj)(hidden);
    const std::vector<Tensor> latents = nn::split(compressed, Sizes{plan.key_rank, plan.turned}, -1);
    Tensor latent = (*kv_a_layernorm)(latents[0]);
    latent = nn::view(latent, {batch, 1, length, plan.key_rank});
    Tensor key_turned = nn::view(latents[1], {batch, 1, length, plan.turned});
    std::tie(query_turned, key_turned) = turned(query_turned, key_turned, rotation);
    if (cache) std::tie(latent, key_turned) = cache->update(layer, latent, key_turned);
    const Tensor query = nn::cat({query_parts[0], query_turned}, -1);
    const auto [key, value] = expanded(latent, key_turned);
    Tensor output = attend(query, key, value,
                           {.mask = mask,
                            .dropout = plan.dropout,
                            .causal = !mask.defined() && causal(length),
                            .scale = plan.scale});
    output = nn::contiguous(nn::reshape(std::move(output), {batch, length, -1}));
    return (*o_proj)(output);
  }

  // One query behind a cache sees all keys.
  bool causal(int64_t queries) const { return !cache || queries > 1; }

  Rotation turned(const Tensor& query, const Tensor& key, const Rotation& rotation) const {
    if (plan.complex) return rotated_complex(query, key, rotation.first);
    if (plan.interleaved) return rotated_pairs(query, key, rotation);
    return rotated(query, key, rotation.first, rotation.second);
  }

  // Keys are put together in memory of their own.
  std::pair<Tensor, Tensor> expanded(const Tensor& latent, Tensor key_turned) {
    const int64_t batch = latent.size(0), length = latent.size(2);
    const Tensor both =
        nn::transpose(nn::view((*kv_b_proj)(latent), {batch, length, -1, plan.plain + plan.value}), 1, 2);
    const std::vector<Tensor> parts = nn::split(both, Sizes{plan.plain, plan.value}, -1);
    key_turned = nn::expand(key_turned, {-1, plan.heads, -1, -1});
    const Tensor key =
        nn::call("new_empty", both, Sizes{batch, plan.heads, length, plan.plain + plan.turned});
    (void)nn::call("copy_", nn::slice(key, 3, 0, plan.plain), parts[0]);
    (void)nn::call("copy_", nn::slice(key, 3, plan.plain, nn::kEnd), key_turned);
    return {key, parts[1]};
  }

  LatentPlan plan;
  std::shared_ptr<KeyCache> cache;
  size_t layer;
  std::optional<nn::Linear> q_proj, q_a_proj, q_b_proj, kv_a_proj, kv_b_proj, o_proj;
  std::optional<RmsNorm> q_a_layernorm, kv_a_layernorm;
};

}  // namespace

AttentionPart latent_attention(const Place& place, const DecoderPlan& decoder, const LatentPlan& plan,
                               int64_t index) {
  return [made = std::make_shared<LatentAttention>(place, decoder, plan, index)](Tensor x, Rotation rotation,
                                                                                 Tensor mask) {
    return (*made)(std::move(x), std::move(rotation), std::move(mask));
  };
}

}  // namespace metaprof::configs
