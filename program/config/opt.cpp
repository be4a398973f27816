// opt: learned positions from the attention mask, norms before the parts or behind them, the embedding possibly
// narrower than the layers. Names and defaults: transformers 5.17, models/opt.

#include <cmath>

#include "program/config/families.h"

namespace metaprof::configs {
namespace {

struct OptPlan {
  int64_t vocabulary, positions, hidden, embedded, inner, layers, heads, padding;
  double dropout, attention_dropout;
  bool bias, norm_before, final_norm, tied;
  std::string activation, where;
};

OptPlan opt_plan(const Config& config) {
  OptPlan plan{.vocabulary = config.size({"vocab_size"}, 50272),
               .positions = config.size({"max_position_embeddings"}, 2048),
               .hidden = config.size({"hidden_size"}, 768),
               .embedded = 0,
               .inner = config.size({"ffn_dim"}, 3072),
               .layers = config.layers({"num_hidden_layers"}, 12),
               .heads = config.size({"num_attention_heads"}, 12),
               .padding = config.count({"pad_token_id"}, 1),
               .dropout = config.real({"dropout"}, 0.1),
               .attention_dropout = config.real({"attention_dropout"}, 0),
               .bias = config.flag({"enable_bias"}, true),
               .norm_before = config.flag({"do_layer_norm_before"}, true),
               .final_norm = !config.flag({"_remove_final_layer_norm"}, false),
               .tied = config.flag({"tie_word_embeddings"}, true),
               .activation = config.text({"activation_function"}, "relu"),
               .where = config.where()};
  plan.embedded = config.size({"word_embed_proj_dim"}, plan.hidden);
  plan.final_norm &= plan.norm_before;
  (void)config.divided("hidden_size", plan.hidden, "num_attention_heads", plan.heads);
  if (!config.flag({"layer_norm_elementwise_affine"}, true))
    config.reject("layer_norm_elementwise_affine", "norms without weights are not built");
  return plan;
}

std::string opt_type(const char* name) { return std::string("transformers.models.opt.modeling_opt.") + name; }

struct OptAttention : nn::Module<OptAttention> {
  OptAttention(const Place& place, const OptPlan& plan)
      : Module(place, opt_type("OPTAttention")),
        heads(plan.heads),
        width(plan.hidden / plan.heads),
        dropout(plan.attention_dropout),
        k_proj(child("k_proj"), plan.hidden, plan.hidden, plan.bias),
        v_proj(child("v_proj"), plan.hidden, plan.hidden, plan.bias),
        q_proj(child("q_proj"), plan.hidden, plan.hidden, plan.bias),
        out_proj(child("out_proj"), plan.hidden, plan.hidden, plan.bias) {}

  Tensor forward(Tensor hidden) {
    const Sizes sizes{hidden.size(0), -1, heads, width};
    Tensor query = q_proj(hidden) * (1 / std::sqrt(static_cast<double>(width)));
    query = nn::transpose(nn::view(std::move(query), sizes), 1, 2);
    Tensor key = k_proj(hidden);
    Tensor value = v_proj(hidden);
    key = nn::transpose(nn::view(std::move(key), sizes), 1, 2);
    value = nn::transpose(nn::view(std::move(value), sizes), 1, 2);
    Tensor output = attend(query, key, value, {.mask = {}, .dropout = dropout, .causal = true, .scale = 1.0});
    output = nn::reshape(std::move(output), {hidden.size(0), hidden.size(1), -1});
    return out_proj(output);
  }

  int64_t heads, width;
  double dropout;
  nn::Linear k_proj, v_proj, q_proj, out_proj;
};

struct OptLayer : nn::Module<OptLayer> {
  OptLayer(const Place& place, const OptPlan& plan)
      : Module(place, opt_type("OPTDecoderLayer")),
        norm_before(plan.norm_before),
        dropout(plan.dropout),
        self_attn(child("self_attn"), plan),
        activation_fn(child("activation_fn"), plan.activation, plan.where),
        self_attn_layer_norm(child("self_attn_layer_norm"), plan.hidden),
        fc1(child("fc1"), plan.hidden, plan.inner, plan.bias),
        fc2(child("fc2"), plan.inner, plan.hidden, plan.bias),
        final_layer_norm(child("final_layer_norm"), plan.hidden) {}

  Tensor forward(Tensor hidden) {
    const Sizes sizes = hidden.sizes();
    Tensor residual = hidden;
    if (norm_before) hidden = self_attn_layer_norm(hidden);
    hidden = self_attn(hidden);
    hidden = nn::dropout(hidden, dropout);
    hidden = residual + hidden;
    if (!norm_before) hidden = self_attn_layer_norm(hidden);
    hidden = nn::reshape(hidden, {-1, hidden.size(-1)});
    residual = hidden;
    if (norm_before) hidden = final_layer_norm(hidden);
    hidden = fc1(hidden);
    hidden = activation_fn(hidden);
    hidden = fc2(hidden);
    hidden = nn::dropout(hidden, dropout);
    hidden = nn::view(residual + hidden, sizes);
    if (!norm_before) hidden = final_layer_norm(hidden);
    return hidden;
  }

  bool norm_before;
  double dropout;
  OptAttention self_attn;
  Activation activation_fn;
  nn::LayerNorm self_attn_layer_norm;
  nn::Linear fc1, fc2;
  nn::LayerNorm final_layer_norm;
};

// Positions count the tokens of the mask; the table has two rows before the first.
struct OptPositions : nn::Module<OptPositions> {
  OptPositions(const Place& place, int64_t positions, int64_t hidden)
      : Module(place, opt_type("OPTLearnedPositionalEmbedding")),
        weight(parameter("weight", {positions + 2, hidden})) {}
  Tensor forward(Tensor positions) {
    return nn::call("embedding", weight, nn::call("add.Tensor", std::move(positions), 2));
  }
  Tensor weight;
};

struct OptDecoder : nn::Module<OptDecoder> {
  OptDecoder(const Place& place, const OptPlan& plan)
      : Module(place, opt_type("OPTDecoder")),
        embed_tokens(child("embed_tokens"), plan.vocabulary, plan.embedded, plan.padding),
        embed_positions(child("embed_positions"), plan.positions, plan.hidden) {
    if (plan.embedded != plan.hidden) {
      project_out.emplace(child("project_out"), plan.hidden, plan.embedded, false);
      project_in.emplace(child("project_in"), plan.embedded, plan.hidden, false);
    }
    if (plan.final_norm) final_layer_norm.emplace(child("final_layer_norm"), plan.hidden);
    layers.emplace(child("layers"), plan.layers,
                   [&](const Place& at, int64_t) { return OptLayer(at, plan); });
  }

  Tensor forward(Tensor ids) {
    ids = nn::view(ids, {-1, ids.size(1)});
    Tensor embedded = embed_tokens(ids);
    nn::Argument given[] = {ids.sizes(), std::nullopt, std::nullopt, kModelDevice};
    const Tensor mask = make("ones", given);
    Tensor positions = nn::call("cumsum", mask, 1);
    positions = nn::to(nn::call("sub.Tensor", positions * mask, 1), DType::i64);
    positions = nn::slice(nn::slice(positions, 0, 0, nn::kEnd), 1, 0, nn::kEnd);
    const Tensor places = embed_positions(positions);
    if (project_in) embedded = (*project_in)(embedded);
    Tensor hidden = embedded + places;
    for (OptLayer& layer : *layers) hidden = layer(hidden);
    if (final_layer_norm) hidden = (*final_layer_norm)(hidden);
    if (project_out) hidden = (*project_out)(hidden);
    return hidden;
  }

  nn::Embedding embed_tokens;
  OptPositions embed_positions;
  std::optional<nn::Linear> project_out, project_in;
  std::optional<nn::LayerNorm> final_layer_norm;
  std::optional<nn::ModuleList<OptLayer>> layers;
};

struct OptModel : nn::Module<OptModel> {
  OptModel(const Place& place, const OptPlan& plan)
      : Module(place, opt_type("OPTModel")), decoder(child("decoder"), plan) {}
  OptDecoder decoder;
};

struct OptLanguageModel : nn::Module<OptLanguageModel> {
  OptLanguageModel(const Place& place, const OptPlan& plan)
      : Module(place, opt_type("OPTForCausalLM")),
        model(child("model"), plan),
        lm_head(plan.tied ? nn::Linear(child("lm_head"), model.decoder.embed_tokens.weight, false)
                          : nn::Linear(child("lm_head"), plan.embedded, plan.vocabulary, false)) {}

  Tensor forward(Tensor ids) {
    const Tensor hidden = model.decoder(ids);
    return lm_head(nn::slice(hidden, 1, 0, nn::kEnd));
  }

  OptModel model;
  nn::Linear lm_head;
};

}  // namespace

Program opt_program(const ConfigModel& model) {
  const OptPlan plan = opt_plan(model.config);
  return causal_language_model_program<OptLanguageModel>(model, plan.positions, plan);
}

}  // namespace metaprof::configs
