// gpt_neox (pythia) and phi: rotary positions on a part of each head, attention and feed-forward part side by
// side. Names and defaults: transformers 5.17, models/gpt_neox, models/phi.

#include <cmath>

#include "program/config/families.h"

namespace metaprof::configs {
namespace {

struct ParallelPlan {
  FamilyName name;
  int64_t vocabulary, positions, hidden, inner, layers, heads, key_heads, rotary;
  double epsilon, hidden_dropout, attention_dropout, embedding_dropout;
  bool bias, parallel, head_norm, tied;
  std::string activation, where;

  int64_t width() const { return hidden / heads; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(width())); }
};

// In `rope_parameters` (5.17), or beside it.
int64_t rotary_width(const Config& config, int64_t width, Config::Keys older, double otherwise) {
  const double factor =
      config.nested("rope_parameters").real({"partial_rotary_factor"}, config.real(older, otherwise));
  if (factor < 0 || factor > 1) config.reject(*older.begin(), "expected a number from 0 to 1");
  return static_cast<int64_t>(static_cast<double>(width) * factor);
}

ParallelPlan neox_plan(const Config& config) {
  ParallelPlan plan{.name = {"gpt_neox", "GPTNeoX"},
                    .vocabulary = config.size({"vocab_size"}, 50432),
                    .positions = config.size({"max_position_embeddings"}, 2048),
                    .hidden = config.size({"hidden_size"}, 6144),
                    .inner = config.size({"intermediate_size"}, 24576),
                    .layers = config.layers({"num_hidden_layers"}, 44),
                    .heads = config.size({"num_attention_heads"}, 64),
                    .key_heads = 0,
                    .rotary = 0,
                    .epsilon = config.real({"layer_norm_eps"}, 1e-5),
                    .hidden_dropout = config.real({"hidden_dropout"}, 0),
                    .attention_dropout = config.real({"attention_dropout"}, 0),
                    .embedding_dropout = 0,
                    .bias = config.flag({"attention_bias"}, true),
                    .parallel = config.flag({"use_parallel_residual"}, true),
                    .head_norm = false,
                    .tied = config.flag({"tie_word_embeddings"}, false),
                    .activation = config.text({"hidden_act"}, "gelu"),
                    .where = config.where()};
  const int64_t width = config.divided("hidden_size", plan.hidden, "num_attention_heads", plan.heads);
  plan.rotary = rotary_width(config, width, {"rotary_pct"}, 0.25);
  return plan;
}

// down(activation(up(x))), under the names of a family.
struct TwoLayers : nn::Module<TwoLayers> {
  TwoLayers(const Place& place, const ParallelPlan& plan, const char* up_name, const char* down_name,
            const char* activation_name, bool activation_first)
      : Module(place, plan.name.type("MLP")) {
    if (activation_first) activation.emplace(child(activation_name), plan.activation, plan.where);
    up.emplace(child(up_name), plan.hidden, plan.inner);
    down.emplace(child(down_name), plan.inner, plan.hidden);
    if (!activation_first) activation.emplace(child(activation_name), plan.activation, plan.where);
  }

  Tensor forward(Tensor hidden) {
    hidden = (*up)(hidden);
    hidden = (*activation)(hidden);
    return (*down)(hidden);
  }

  std::optional<nn::Linear> up, down;
  std::optional<Activation> activation;
};

struct NeoxAttention : nn::Module<NeoxAttention> {
  NeoxAttention(const Place& place, const ParallelPlan& plan)
      : Module(place, plan.name.type("Attention")),
        width(plan.width()),
        dropout(plan.attention_dropout),
        scale(plan.scale()),
        query_key_value(child("query_key_value"), plan.hidden, 3 * plan.hidden, plan.bias),
        dense(child("dense"), plan.hidden, plan.hidden, plan.bias) {}

  Tensor forward(Tensor hidden, Rotation rotation) {
    const Tensor all = split_heads(query_key_value(hidden), 3 * width);
    std::vector<Tensor> parts = nn::chunk(all, 3, -1);
    Tensor query = std::move(parts[0]), key = std::move(parts[1]), value = std::move(parts[2]);
    std::tie(query, key) = turned(query, key, rotation.first, rotation.second);
    Tensor output =
        attend(query, key, value, {.mask = {}, .dropout = dropout, .causal = true, .scale = scale});
    output = nn::contiguous(nn::reshape(std::move(output), {hidden.size(0), hidden.size(1), -1}));
    return dense(output);
  }

  // The turned part and the rest are put together even where there is no rest.
  static Rotation turned(const Tensor& query, const Tensor& key, Tensor cosines, Tensor sines) {
    const int64_t part = cosines.size(-1);
    const Tensor query_part = nn::slice(query, 3, 0, part), query_rest = nn::slice(query, 3, part, nn::kEnd);
    const Tensor key_part = nn::slice(key, 3, 0, part), key_rest = nn::slice(key, 3, part, nn::kEnd);
    Rotation both = rotated(query_part, key_part, cosines, sines);
    both.first = nn::cat({both.first, query_rest}, -1);
    both.second = nn::cat({both.second, key_rest}, -1);
    return both;
  }

  int64_t width;
  double dropout, scale;
  nn::Linear query_key_value, dense;
};

struct NeoxLayer : nn::Module<NeoxLayer> {
  NeoxLayer(const Place& place, const ParallelPlan& plan)
      : Module(place, plan.name.type("Layer")),
        parallel(plan.parallel),
        input_layernorm(child("input_layernorm"), plan.hidden, plan.epsilon),
        post_attention_layernorm(child("post_attention_layernorm"), plan.hidden, plan.epsilon),
        post_attention_dropout(child("post_attention_dropout"), plan.hidden_dropout),
        post_mlp_dropout(child("post_mlp_dropout"), plan.hidden_dropout),
        attention(child("attention"), plan),
        mlp(child("mlp"), plan, "dense_h_to_4h", "dense_4h_to_h", "act", false) {}

  Tensor forward(Tensor hidden, Rotation rotation) {
    Tensor attended = attention(input_layernorm(hidden), rotation);
    attended = post_attention_dropout(attended);
    if (!parallel) attended = attended + hidden;
    Tensor fed = mlp(post_attention_layernorm(parallel ? hidden : attended));
    fed = post_mlp_dropout(fed);
    Tensor both = fed + attended;
    return parallel ? std::move(both) + hidden : both;
  }

  bool parallel;
  nn::LayerNorm input_layernorm, post_attention_layernorm;
  nn::Dropout post_attention_dropout, post_mlp_dropout;
  NeoxAttention attention;
  TwoLayers mlp;
};

struct NeoxModel : nn::Module<NeoxModel> {
  NeoxModel(const Place& place, const ParallelPlan& plan)
      : Module(place, plan.name.type("Model")),
        embed_in(child("embed_in"), plan.vocabulary, plan.hidden),
        emb_dropout(child("emb_dropout"), plan.hidden_dropout),
        layers(child("layers"), plan.layers, [&](const Place& at, int64_t) { return NeoxLayer(at, plan); }),
        final_layer_norm(child("final_layer_norm"), plan.hidden, plan.epsilon),
        rotary_emb(child("rotary_emb"), plan.name.type("RotaryEmbedding"), plan.rotary) {}

  Tensor forward(Tensor ids) {
    const Tensor embedded = embed_in(ids);
    const Tensor positions = positions_of(*this, ids.size(1));
    Tensor hidden = emb_dropout(embedded);
    const Rotation rotation = rotary_emb(hidden, positions);
    for (NeoxLayer& layer : layers) hidden = layer(hidden, rotation);
    return final_layer_norm(hidden);
  }

  nn::Embedding embed_in;
  nn::Dropout emb_dropout;
  nn::ModuleList<NeoxLayer> layers;
  nn::LayerNorm final_layer_norm;
  RotaryEmbedding rotary_emb;
};

struct NeoxLanguageModel : nn::Module<NeoxLanguageModel> {
  NeoxLanguageModel(const Place& place, const ParallelPlan& plan)
      : Module(place, plan.name.type("ForCausalLM")),
        gpt_neox(child("gpt_neox"), plan),
        lm_head(plan.tied ? nn::Linear(child("lm_head"), gpt_neox.embed_in.weight, false)
                          : nn::Linear(child("lm_head"), plan.hidden, plan.vocabulary, false)) {}

  Tensor forward(Tensor ids) {
    const Tensor hidden = gpt_neox(ids);
    return lm_head(nn::slice(hidden, 1, 0, nn::kEnd));
  }

  NeoxModel gpt_neox;
  nn::Linear lm_head;
};

ParallelPlan phi_plan(const Config& config) {
  ParallelPlan plan{.name = {"phi", "Phi"},
                    .vocabulary = config.size({"vocab_size"}, 51200),
                    .positions = config.size({"max_position_embeddings"}, 2048),
                    .hidden = config.size({"hidden_size"}, 2048),
                    .inner = config.size({"intermediate_size"}, 8192),
                    .layers = config.layers({"num_hidden_layers"}, 24),
                    .heads = config.size({"num_attention_heads"}, 32),
                    .key_heads = 0,
                    .rotary = 0,
                    .epsilon = config.real({"layer_norm_eps"}, 1e-5),
                    .hidden_dropout = config.real({"resid_pdrop"}, 0),
                    .attention_dropout = config.real({"attention_dropout"}, 0),
                    .embedding_dropout = config.real({"embd_pdrop"}, 0),
                    .bias = true,
                    .parallel = true,
                    .head_norm = config.flag({"qk_layernorm"}, false),
                    .tied = config.flag({"tie_word_embeddings"}, false),
                    .activation = config.text({"hidden_act"}, "gelu_new"),
                    .where = config.where()};
  plan.key_heads = config.size({"num_key_value_heads"}, plan.heads);
  if (plan.heads % plan.key_heads != 0)
    config.reject("num_key_value_heads", fmt::format("{} heads cannot share {} heads of keys and values",
                                                     plan.heads, plan.key_heads));
  const int64_t width = config.divided("hidden_size", plan.hidden, "num_attention_heads", plan.heads);
  plan.rotary = rotary_width(config, width, {"partial_rotary_factor"}, 0.5);
  return plan;
}

struct PhiAttention : nn::Module<PhiAttention> {
  PhiAttention(const Place& place, const ParallelPlan& plan)
      : Module(place, plan.name.type("Attention")),
        width(plan.width()),
        grouped(plan.heads != plan.key_heads),
        dropout(plan.attention_dropout),
        scale(plan.scale()),
        q_proj(child("q_proj"), plan.hidden, plan.hidden),
        k_proj(child("k_proj"), plan.hidden, plan.key_heads * width),
        v_proj(child("v_proj"), plan.hidden, plan.key_heads * width),
        dense(child("dense"), plan.hidden, plan.hidden) {
    if (!plan.head_norm) return;
    q_layernorm.emplace(child("q_layernorm"), width, plan.epsilon);
    k_layernorm.emplace(child("k_layernorm"), width, plan.epsilon);
  }

  Tensor forward(Tensor hidden, Rotation rotation) {
    Tensor query = split_heads(q_proj(hidden), width);
    Tensor key = split_heads(k_proj(hidden), width);
    const Tensor value = split_heads(v_proj(hidden), width);
    if (q_layernorm) {
      query = (*q_layernorm)(query);
      key = (*k_layernorm)(key);
    }
    const int64_t part = rotation.first.size(-1);
    Tensor query_part = nn::slice(query, 3, 0, part);
    const Tensor query_rest = nn::slice(query, 3, part, nn::kEnd);
    Tensor key_part = nn::slice(key, 3, 0, part);
    const Tensor key_rest = nn::slice(key, 3, part, nn::kEnd);
    std::tie(query_part, key_part) = rotated(query_part, key_part, rotation.first, rotation.second);
    query = nn::cat({query_part, query_rest}, -1);
    key = nn::cat({key_part, key_rest}, -1);
    Tensor output =
        attend(query, key, value,
               {.mask = {}, .dropout = dropout, .causal = true, .scale = scale, .grouped = grouped});
    output = nn::reshape(std::move(output), {hidden.size(0), hidden.size(1), -1});
    return dense(output);
  }

  int64_t width;
  bool grouped;
  double dropout, scale;
  nn::Linear q_proj, k_proj, v_proj, dense;
  std::optional<nn::LayerNorm> q_layernorm, k_layernorm;
};

struct PhiLayer : nn::Module<PhiLayer> {
  PhiLayer(const Place& place, const ParallelPlan& plan)
      : Module(place, plan.name.type("DecoderLayer")),
        self_attn(child("self_attn"), plan),
        mlp(child("mlp"), plan, "fc1", "fc2", "activation_fn", true),
        input_layernorm(child("input_layernorm"), plan.hidden, plan.epsilon),
        resid_dropout(child("resid_dropout"), plan.hidden_dropout) {}

  Tensor forward(Tensor hidden, Rotation rotation) {
    const Tensor residual = hidden;
    hidden = input_layernorm(hidden);
    Tensor attended = self_attn(hidden, rotation);
    attended = resid_dropout(attended);
    const Tensor fed = resid_dropout(mlp(hidden));
    return (attended + fed) + residual;
  }

  PhiAttention self_attn;
  TwoLayers mlp;
  nn::LayerNorm input_layernorm;
  nn::Dropout resid_dropout;
};

struct PhiModel : nn::Module<PhiModel> {
  PhiModel(const Place& place, const ParallelPlan& plan)
      : Module(place, plan.name.type("Model")),
        embed_tokens(child("embed_tokens"), plan.vocabulary, plan.hidden),
        layers(child("layers"), plan.layers, [&](const Place& at, int64_t) { return PhiLayer(at, plan); }),
        rotary_emb(child("rotary_emb"), plan.name.type("RotaryEmbedding"), plan.rotary),
        embed_dropout(child("embed_dropout"), plan.embedding_dropout),
        final_layernorm(child("final_layernorm"), plan.hidden, plan.epsilon) {}

  Tensor forward(Tensor ids) {
    Tensor embedded = embed_tokens(ids);
    const Tensor positions = positions_of(*this, ids.size(1));
    embedded = embed_dropout(embedded);
    Tensor hidden = embedded;
    const Rotation rotation = rotary_emb(hidden, positions);
    for (PhiLayer& layer : layers) hidden = layer(hidden, rotation);
    return final_layernorm(hidden);
  }

  nn::Embedding embed_tokens;
  nn::ModuleList<PhiLayer> layers;
  RotaryEmbedding rotary_emb;
  nn::Dropout embed_dropout;
  nn::LayerNorm final_layernorm;
};

struct PhiLanguageModel : nn::Module<PhiLanguageModel> {
  PhiLanguageModel(const Place& place, const ParallelPlan& plan)
      : Module(place, plan.name.type("ForCausalLM")), model(child("model"), plan) {
    if (plan.tied)
      lm_head.emplace(child("lm_head"), model.embed_tokens.weight, true);
    else
      lm_head.emplace(child("lm_head"), plan.hidden, plan.vocabulary, true);
  }

  Tensor forward(Tensor ids) {
    const Tensor hidden = model(ids);
    return (*lm_head)(nn::slice(hidden, 1, 0, nn::kEnd));
  }

  PhiModel model;
  std::optional<nn::Linear> lm_head;
};

}  // namespace

Program gpt_neox_program(const ConfigModel& model) {
  const ParallelPlan plan = neox_plan(model.config);
  return causal_language_model_program<NeoxLanguageModel>(model, plan.positions, plan);
}

Program phi_program(const ConfigModel& model) {
  const ParallelPlan plan = phi_plan(model.config);
  return causal_language_model_program<PhiLanguageModel>(model, plan.positions, plan);
}

}  // namespace metaprof::configs
