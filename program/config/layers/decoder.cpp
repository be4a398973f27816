#include "program/config/layers/decoder.h"

#include <algorithm>

#include "program/config/layers/masks.h"

namespace metaprof::configs {
namespace {

// Queries, keys and values [batch, heads, positions, width].
struct Heads {
  Tensor query, key, value;
};

// modeling_gpt_oss.py, _apply_rotary_emb: angles stand once in the table, and the halves of a head turn together.
Tensor turned_halves(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  const std::vector<Tensor> halves = nn::chunk(x, 2, -1);
  Tensor first = halves[0] * cosines;
  first = std::move(first) - halves[1] * sines;
  Tensor second = halves[1] * cosines;
  second = std::move(second) + halves[0] * sines;
  return nn::cat({first, second}, -1);
}

Rotation rotated_halves(const Tensor& query, const Tensor& key, const Rotation& rotation) {
  const Tensor cosines = nn::unsqueeze(rotation.first, 1);
  const Tensor sines = nn::unsqueeze(rotation.second, 1);
  Tensor turned_query = turned_halves(query, cosines, sines);
  return {std::move(turned_query), turned_halves(key, cosines, sines)};
}

constexpr int64_t kMostSharedWidth = 256;

struct DecoderAttention : nn::Module<DecoderAttention> {
  DecoderAttention(const Place& place, const DecoderPlan& decoder, int64_t index)
      : Module(place, decoder.name.type("Attention")),
        plan(decoder.attention),
        cache(decoder.cache),
        layer(static_cast<size_t>(index)),
        converts(decoder.rotary_32bits),
        doubled(decoder.rotary_doubled) {
    const int64_t queries = plan.heads * plan.width, keys = plan.key_heads * plan.width;
    const auto linear = [&](const char* name, int64_t in, int64_t out, bool bias) {
      return part<nn::Linear>(child(name), in, out, bias);
    };
    if (plan.sinks) sinks = parameter("sinks", {plan.heads});
    if (plan.fused) {
      o_proj = linear("o_proj", queries, plan.hidden, plan.output_bias);
      qkv_proj = linear("qkv_proj", plan.hidden, queries + 2 * keys, plan.bias);
    } else {
      q_proj = linear("q_proj", plan.hidden, queries, plan.bias);
      k_proj = linear("k_proj", plan.hidden, keys, plan.bias);
      v_proj = linear("v_proj", plan.hidden, keys, plan.bias);
      o_proj = linear("o_proj", queries, plan.hidden, plan.output_bias);
    }
    if (plan.head_norm == AttentionPlan::HeadNorm::none) return;
    const bool whole = plan.head_norm == AttentionPlan::HeadNorm::whole_projection;
    const auto norm = [&](const char* name, int64_t width) {
      return part<RmsNorm>(child(name), decoder.name.type("RMSNorm"), width, decoder.epsilon, decoder.norm);
    };
    q_norm = norm("q_norm", whole ? queries : plan.width);
    k_norm = norm("k_norm", whole ? keys : plan.width);
  }

  Tensor forward(Tensor hidden, Rotation rotation, Tensor mask) {
    const Sizes outer{hidden.size(0), hidden.size(1), -1};
    auto [query, key, value] = heads(hidden);
    std::tie(query, key) = doubled ? rotated(query, key, rotation.first, rotation.second, converts)
                                   : rotated_halves(query, key, rotation);
    if (cache) std::tie(key, value) = cache->update(layer, key, value);
    Tensor output =
        plan.sinks ? attend_with_sinks(query, key, value, mask) : attend_fused(query, key, value, mask);
    output = nn::reshape(std::move(output), outer);
    output = o_proj(output);
    if (plan.residual_dropout >= 0) output = nn::dropout(std::move(output), plan.residual_dropout);
    return output;
  }

  // integrations/sdpa_attention.py: heads of keys are shared where there is no mask and they are at most 256 wide;
  // otherwise they are repeated.
  Tensor attend_fused(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) const {
    nn::Attention options{.mask = mask,
                          .dropout = plan.dropout,
                          .causal = !mask.defined() && query.size(2) > 1,
                          .scale = plan.scale,
                          .grouped = plan.heads != plan.key_heads};
    if (!options.grouped || (!mask.defined() && plan.width <= kMostSharedWidth))
      return attend(query, key, value, options);
    options.grouped = false;
    const Tensor keys = repeated(key);
    return attend(query, keys, repeated(value), options);
  }

  Heads heads(const Tensor& hidden) {
    using HeadNorm = AttentionPlan::HeadNorm;
    if (plan.fused) return split(qkv_proj(hidden));
    const Sizes sizes{hidden.size(0), hidden.size(1), -1, plan.width};
    if (plan.head_norm == HeadNorm::whole_projection) {
      Tensor query = q_norm(q_proj(hidden));
      Tensor key = k_norm(k_proj(hidden));
      Tensor value = v_proj(hidden);
      query = split_heads(std::move(query), plan.width);
      key = split_heads(std::move(key), plan.width);
      return {std::move(query), std::move(key), split_heads(std::move(value), plan.width)};
    }
    if (plan.head_norm == HeadNorm::before_transposing) {
      Tensor query = nn::transpose(q_norm(nn::view(q_proj(hidden), sizes)), 1, 2);
      Tensor key = nn::transpose(k_norm(nn::view(k_proj(hidden), sizes)), 1, 2);
      return {std::move(query), std::move(key), split_heads(v_proj(hidden), plan.width)};
    }
    Tensor query = split_heads(q_proj(hidden), plan.width);
    Tensor key = split_heads(k_proj(hidden), plan.width);
    Tensor value = split_heads(v_proj(hidden), plan.width);
    if (plan.head_norm == HeadNorm::after_transposing) {
      query = q_norm(query);
      key = k_norm(key);
    }
    return {std::move(query), std::move(key), std::move(value)};
  }

  // One projection's queries, then keys, then values.
  Heads split(const Tensor& all) const {
    const int64_t keys_at = plan.heads * plan.width, values_at = keys_at + plan.key_heads * plan.width;
    Tensor query = nn::slice(all, 2, 0, keys_at);
    Tensor key = nn::slice(all, 2, keys_at, values_at);
    Tensor value = nn::slice(all, 2, values_at, nn::kEnd);
    query = split_heads(std::move(query), plan.width);
    key = split_heads(std::move(key), plan.width);
    return {std::move(query), std::move(key), split_heads(std::move(value), plan.width)};
  }

  // Every head of keys or values as often as queries share it.
  Tensor repeated(const Tensor& x) const {
    const int64_t times = plan.heads / plan.key_heads;
    if (times == 1) return x;
    Tensor wide = nn::expand(nn::unsqueeze(x, 2), {x.size(0), x.size(1), times, x.size(2), x.size(3)});
    return nn::reshape(std::move(wide), {x.size(0), plan.heads, x.size(2), x.size(3)});
  }

  // gpt_oss's eager attention: the sinks are one more key, whose probability is thrown away.
  Tensor attend_with_sinks(const Tensor& query, const Tensor& key, const Tensor& value,
                           const Tensor& mask) const {
    const Tensor keys = repeated(key), values = repeated(value);
    Tensor weights = nn::matmul(query, nn::transpose(keys, 2, 3)) * plan.scale;
    weights = weights + mask;
    const Tensor column =
        nn::expand(nn::reshape(sinks, {1, -1, 1, 1}), {query.size(0), -1, query.size(-2), -1});
    Tensor combined = nn::cat({weights, column}, -1);
    combined = combined - nn::call_all("max.dim", combined, -1, true).at(0);
    const Tensor probabilities = nn::softmax(combined, -1);
    Tensor scores = nn::slice(probabilities, 3, 0, probabilities.size(-1) - 1);
    weights = nn::to(nn::dropout(std::move(scores), plan.dropout), value.dtype());
    return nn::contiguous(nn::transpose(nn::matmul(weights, values), 1, 2));
  }

  AttentionPlan plan;
  std::shared_ptr<KeyCache> cache;
  size_t layer;
  bool converts;  // what the table of positions has turned
  bool doubled;   // each angle stands twice in the table
  Tensor sinks;
  AnyPart q_proj, k_proj, v_proj, qkv_proj, o_proj, q_norm, k_norm;
};

}  // namespace

AnyPart DecoderPlan::norm_part(const Place& place) const {
  if (layer_norm) return part<nn::LayerNorm>(place, hidden, epsilon);
  return part<RmsNorm>(place, name.type("RMSNorm"), hidden, epsilon, norm);
}

void DecoderPlan::fill_cache(const nn::AnyModule& module, const Tensor& like, int64_t batch) const {
  for (int64_t layer = 0; layer < layers; ++layer) {
    CachedWidths widths = cached;
    widths.window = has_window(layer) ? window : 0;
    cache->add_layer(module, like, batch, widths);
  }
}

GatedMlp::GatedMlp(const Place& place, std::string type, int64_t hidden, int64_t inner, bool bias,
                   const std::string& activation, const std::string& where)
    : Module(place, std::move(type)),
      gate_proj(child("gate_proj"), hidden, inner, bias),
      up_proj(child("up_proj"), hidden, inner, bias),
      down_proj(child("down_proj"), inner, hidden, bias),
      act_fn(child("act_fn"), activation, where) {}

Tensor GatedMlp::forward(Tensor x) {
  Tensor gate = act_fn(gate_proj(x));
  return down_proj(std::move(gate) * up_proj(x));
}

DecoderLayer::DecoderLayer(const Place& place, const DecoderPlan& plan, int64_t index)
    : Module(place, plan.name.type("DecoderLayer")) {
  if (plan.make_attention) {
    self_attn = plan.make_attention(child("self_attn"), plan, index);
  } else {
    self_attn = [made = std::make_shared<DecoderAttention>(child("self_attn"), plan, index)](
                    Tensor x, Rotation rotation, Tensor mask) {
      return (*made)(std::move(x), std::move(rotation), std::move(mask));
    };
  }
  mlp = plan.make_feed_forward(child("mlp"), plan, index);
  if (plan.norm_before) input_norm = plan.norm_part(child("input_layernorm"));
  if (plan.norm_after) {
    attention_norm = plan.norm_part(child("post_attention_layernorm"));
    if (plan.norm_before) feed_forward_norm = plan.norm_part(child("pre_feedforward_layernorm"));
    output_norm = plan.norm_part(child("post_feedforward_layernorm"));
  } else {
    feed_forward_norm = plan.norm_part(child("post_attention_layernorm"));
  }
  if (plan.residual_dropout >= 0) {
    attention_dropout = part<nn::Dropout>(child("resid_attn_dropout"), plan.residual_dropout);
    mlp_dropout = part<nn::Dropout>(child("resid_mlp_dropout"), plan.residual_dropout);
  }
}

Tensor DecoderLayer::forward(Tensor hidden, Rotation rotation, Tensor mask) {
  Tensor residual = hidden;
  if (input_norm) hidden = input_norm(hidden);
  hidden = self_attn(hidden, rotation, mask);
  if (attention_norm) hidden = attention_norm(hidden);
  hidden = residual + (attention_dropout ? attention_dropout(hidden) : hidden);
  residual = hidden;
  if (feed_forward_norm) hidden = feed_forward_norm(hidden);
  hidden = mlp(hidden);
  if (output_norm) hidden = output_norm(hidden);
  return residual + (mlp_dropout ? mlp_dropout(hidden) : hidden);
}

Decoder::Decoder(const Place& place, const DecoderPlan& decoder, std::string_view type)
    : Module(place, decoder.name.type(type)),
      plan(decoder),
      embed_tokens(child("embed_tokens"), plan.vocabulary, plan.hidden, plan.padding),
      embed_scale(plan.scales_embedding ? embed_tokens.buffer("embed_scale", {}, DType::f32, false)
                                        : Tensor()),
      layers(child("layers"), plan.layers,
             [&](const Place& at, int64_t index) { return DecoderLayer(at, plan, index); }),
      norm(plan.norm_part(child("norm"))),
      rotary_emb(child("rotary_emb"), plan.name.type("RotaryEmbedding"), plan.rotary_width, plan.tables) {
  rotary_emb.keeps_32bits = plan.rotary_32bits;
  rotary_emb.doubled = plan.rotary_doubled;
  rotary_emb.complex = plan.rotary_complex;
}

Tensor Decoder::forward(Tensor ids) {
  const Tensor embedded = embed(ids);
  return run(embedded);
}

Tensor Decoder::embed(Tensor ids) {
  Tensor embedded = embed_tokens(ids);
  if (embed_scale.defined()) embedded = embedded * nn::to(embed_scale, embed_tokens.weight.dtype());
  return embedded;
}

Tensor Decoder::run(Tensor embedded) { return run(embedded, masks(embedded)); }

Tensor Decoder::run(Tensor embedded, const std::pair<Tensor, Tensor>& masks) {
  const Tensor positions = positions_of(*this, embedded.size(1));
  Tensor hidden = embedded;
  if (plan.embedding_dropout >= 0) hidden = nn::dropout(hidden, plan.embedding_dropout);
  std::vector<Rotation> rotations(plan.tables.size());
  for (size_t table = rotations.size(); table-- > 0;) rotations[table] = rotary_emb(hidden, positions, table);
  for (size_t i = 0; i < layers.size(); ++i)
    hidden = layers[i](hidden, rotations[plan.table_of_layer.empty() ? 0 : plan.table_of_layer[i]],
                       plan.has_window(static_cast<int64_t>(i)) ? masks.second : masks.first);
  return norm(hidden);
}

std::pair<Tensor, Tensor> Decoder::masks(const Tensor& hidden) const {
  std::pair<Tensor, Tensor> masks;
  const bool slides = plan.window > 0 && (plan.slides.empty() || std::ranges::count(plan.slides, true) > 0);
  const int64_t queries = hidden.size(1);
  const int64_t keys = plan.cache ? plan.cache->keys(queries, 0) : queries;
  const int64_t near = plan.cache ? plan.cache->keys(queries, plan.window) : queries;
  if (plan.attention.sinks) {
    masks.first = additive_causal_mask(*this, hidden, 0, keys);
    if (slides) masks.second = additive_causal_mask(*this, hidden, plan.window, near);
    return masks;
  }
  // One query sees all keys, and as many queries as keys are what `is_causal` says; but a window of all keys already
  // makes a mask (masking_utils.py, _ignore_causal_mask_sdpa).
  const auto needs_mask = [&](int64_t seen) { return queries > 1 && seen != queries; };
  if (needs_mask(keys)) masks.first = causal_mask(*this, hidden, 0, keys);
  if (slides && (near >= plan.window || needs_mask(near)))
    masks.second = causal_mask(*this, hidden, plan.window, near);
  return masks;
}

CausalDecoder::CausalDecoder(const Place& place, const DecoderPlan& plan)
    : Module(place, plan.name.type("ForCausalLM")),
      model(child("model"), plan),
      lm_head(plan.tied ? nn::Linear(child("lm_head"), model.embed_tokens.weight, false)
                        : nn::Linear(child("lm_head"), plan.hidden, plan.vocabulary, false)),
      logit_cap(plan.logit_cap),
      last_logits(plan.last_logits) {}

Tensor CausalDecoder::forward(Tensor ids) {
  const Tensor hidden = model(ids);
  Tensor logits = lm_head(nn::slice(hidden, 1, last_logits ? -1 : 0, nn::kEnd));
  if (logit_cap > 0) {
    logits = logits / logit_cap;
    logits = nn::tanh(logits);
    logits = logits * logit_cap;
  }
  return logits;
}

}  // namespace metaprof::configs
