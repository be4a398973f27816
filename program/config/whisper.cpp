// whisper and bart: an encoder and a decoder that looks at it, absolute positions. Names and defaults:
// transformers 5.17, models/whisper, models/bart.

#include <cmath>
#include <optional>

#include "program/config/families.h"

namespace metaprof::configs {
namespace {

// One of the two stacks.
struct StackPlan {
  FamilyName name;
  int64_t hidden, inner, layers, heads;
  double dropout, attention_dropout, activation_dropout;
  std::string activation, where;
  bool decodes;

  int64_t width() const { return hidden / heads; }
  bool whisper() const { return name.module == "whisper"; }
};

StackPlan stack_plan(const Config& config, FamilyName name, bool decodes, int64_t hidden, int64_t layers,
                     int64_t heads) {
  const bool whisper = name.module == "whisper";
  const std::string_view of[] = {decodes ? "decoder_layers" : "encoder_layers",
                                 decodes ? "decoder_attention_heads" : "encoder_attention_heads",
                                 decodes ? "decoder_ffn_dim" : "encoder_ffn_dim"};
  StackPlan plan{.name = std::move(name),
                 .hidden = config.size({"d_model"}, hidden),
                 .inner = config.size({of[2]}, 4 * hidden),
                 .layers = config.layers({of[0]}, layers),
                 .heads = config.size({of[1]}, heads),
                 .dropout = config.real({"dropout"}, whisper ? 0 : 0.1),
                 .attention_dropout = config.real({"attention_dropout"}, 0),
                 .activation_dropout = config.real({"activation_dropout"}, 0),
                 .activation = config.text({"activation_function"}, "gelu"),
                 .where = config.where(),
                 .decodes = decodes};
  (void)config.divided("d_model", plan.hidden, of[1], plan.heads);
  return plan;
}

struct StackAttention : nn::Module<StackAttention> {
  StackAttention(const Place& place, const StackPlan& plan, bool causal)
      : Module(place, plan.name.type("Attention")),
        whisper(plan.whisper()),
        causal(causal),
        heads(plan.heads),
        width(plan.width()),
        dropout(plan.attention_dropout),
        k_proj(child("k_proj"), plan.hidden, plan.hidden, !plan.whisper()),
        v_proj(child("v_proj"), plan.hidden, plan.hidden),
        q_proj(child("q_proj"), plan.hidden, plan.hidden),
        out_proj(child("out_proj"), plan.hidden, plan.hidden) {}

  // `states`: what keys and values are made of.
  Tensor forward(Tensor hidden, Tensor states) {
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    const Sizes of_states{states.size(0), -1, heads, width};
    Tensor query = whisper ? q_proj(hidden) * scale : q_proj(hidden);
    query = split_heads(std::move(query), width);
    if (whisper) query = nn::contiguous(query);
    Tensor key = part(k_proj, states, of_states);
    Tensor value = part(v_proj, states, of_states);
    Tensor output =
        attend(query, key, value,
               {.mask = {}, .dropout = dropout, .causal = causal, .scale = whisper ? 1.0 : scale});
    output = nn::reshape(std::move(output), {hidden.size(0), hidden.size(1), -1});
    return out_proj(output);
  }

  Tensor part(nn::Linear& projection, const Tensor& states, const Sizes& sizes) const {
    Tensor x = nn::transpose(nn::view(projection(states), sizes), 1, 2);
    return whisper ? nn::contiguous(x) : x;
  }

  bool whisper, causal;
  int64_t heads, width;
  double dropout;
  nn::Linear k_proj, v_proj, q_proj, out_proj;
};

// whisper has norms before the parts, bart behind them.
struct StackLayer : nn::Module<StackLayer> {
  StackLayer(const Place& place, const StackPlan& plan)
      : Module(place, plan.name.type(plan.decodes ? "DecoderLayer" : "EncoderLayer")),
        plan(plan),
        self_attn(child("self_attn"), plan, plan.decodes) {
    if (plan.decodes) activation_fn.emplace(child("activation_fn"), plan.activation, plan.where);
    self_attn_layer_norm.emplace(child("self_attn_layer_norm"), plan.hidden);
    if (plan.decodes) {
      encoder_attn.emplace(child("encoder_attn"), plan, false);
      encoder_attn_layer_norm.emplace(child("encoder_attn_layer_norm"), plan.hidden);
    } else {
      activation_fn.emplace(child("activation_fn"), plan.activation, plan.where);
    }
    fc1.emplace(child("fc1"), plan.hidden, plan.inner);
    fc2.emplace(child("fc2"), plan.inner, plan.hidden);
    final_layer_norm.emplace(child("final_layer_norm"), plan.hidden);
  }

  Tensor forward(Tensor hidden, Tensor states) {
    const bool before = plan.whisper();
    Tensor residual = hidden;
    if (before) hidden = (*self_attn_layer_norm)(hidden);
    hidden = self_attn(hidden, hidden);
    hidden = nn::dropout(hidden, plan.dropout);
    hidden = residual + hidden;
    if (!before) hidden = (*self_attn_layer_norm)(hidden);
    if (encoder_attn) {
      residual = hidden;
      if (before) hidden = (*encoder_attn_layer_norm)(hidden);
      hidden = (*encoder_attn)(hidden, states);
      hidden = nn::dropout(hidden, plan.dropout);
      hidden = residual + hidden;
      if (!before) hidden = (*encoder_attn_layer_norm)(hidden);
    }
    residual = hidden;
    if (before) hidden = (*final_layer_norm)(hidden);
    hidden = (*activation_fn)((*fc1)(hidden));
    hidden = nn::dropout(hidden, plan.activation_dropout);
    hidden = (*fc2)(hidden);
    hidden = nn::dropout(hidden, plan.dropout);
    hidden = residual + hidden;
    if (!before) hidden = (*final_layer_norm)(hidden);
    return hidden;
  }

  StackPlan plan;
  StackAttention self_attn;
  std::optional<Activation> activation_fn;
  std::optional<nn::LayerNorm> self_attn_layer_norm;
  std::optional<StackAttention> encoder_attn;
  std::optional<nn::LayerNorm> encoder_attn_layer_norm;
  std::optional<nn::Linear> fc1, fc2;
  std::optional<nn::LayerNorm> final_layer_norm;
};

nn::ModuleList<StackLayer> stack_layers(const Place& place, const StackPlan& plan) {
  return {place, plan.layers, [&](const Place& at, int64_t) { return StackLayer(at, plan); }};
}

struct WhisperPlan {
  StackPlan encoder, decoder;
  int64_t vocabulary, bins, frames, positions, padding;
  bool tied, scales;
};

struct WhisperEncoder : nn::Module<WhisperEncoder> {
  WhisperEncoder(const Place& place, const WhisperPlan& plan)
      : Module(place, plan.encoder.name.type("Encoder")),
        dropout(plan.encoder.dropout),
        conv1(child("conv1"), plan.bins, plan.encoder.hidden, 3, 1, 1),
        conv2(child("conv2"), plan.encoder.hidden, plan.encoder.hidden, 3, 2, 1),
        embed_positions(child("embed_positions"), plan.frames, plan.encoder.hidden),
        layers(stack_layers(child("layers"), plan.encoder)),
        layer_norm(child("layer_norm"), plan.encoder.hidden) {
    embed_positions.freeze();
  }

  // [batch, bins, 2 · frames] → [batch, frames, hidden]
  Tensor forward(Tensor features) {
    Tensor embedded = nn::gelu(conv1(features));
    embedded = nn::gelu(conv2(embedded));
    embedded = nn::permute(embedded, {0, 2, 1});
    const Tensor positions = arange(embed_positions.weight.size(0));
    Tensor hidden = embedded + embed_positions(positions);
    hidden = nn::dropout(hidden, dropout);
    for (StackLayer& layer : layers) hidden = layer(hidden, Tensor());
    return layer_norm(hidden);
  }

  double dropout;
  nn::Conv1d conv1, conv2;
  nn::Embedding embed_positions;
  nn::ModuleList<StackLayer> layers;
  nn::LayerNorm layer_norm;
};

struct WhisperPositions : nn::Module<WhisperPositions> {
  WhisperPositions(const Place& place, const WhisperPlan& plan)
      : Module(place, plan.decoder.name.type("PositionalEmbedding")),
        weight(parameter("weight", {plan.positions, plan.decoder.hidden})) {}
  Tensor forward(Tensor positions) {
    return nn::call("index.Tensor", weight, std::vector<Tensor>{positions});
  }
  Tensor weight;
};

struct WhisperDecoder : nn::Module<WhisperDecoder> {
  WhisperDecoder(const Place& place, const WhisperPlan& plan)
      : Module(place, plan.decoder.name.type("Decoder")),
        dropout(plan.decoder.dropout),
        embed_tokens(child("embed_tokens"), plan.vocabulary, plan.decoder.hidden, plan.padding),
        embed_positions(child("embed_positions"), plan),
        layers(stack_layers(child("layers"), plan.decoder)),
        layer_norm(child("layer_norm"), plan.decoder.hidden) {}

  Tensor forward(Tensor ids, Tensor states) {
    const Tensor embedded = embed_tokens(ids);
    Tensor positions = positions_of(*this, ids.size(1));
    positions = nn::call("repeat", positions, Sizes{ids.size(0), 1});
    const Tensor places = embed_positions(positions);
    Tensor hidden = embedded + places;
    hidden = nn::dropout(hidden, dropout);
    for (StackLayer& layer : layers) hidden = layer(hidden, states);
    return layer_norm(hidden);
  }

  double dropout;
  nn::Embedding embed_tokens;
  WhisperPositions embed_positions;
  nn::ModuleList<StackLayer> layers;
  nn::LayerNorm layer_norm;
};

struct WhisperInner : nn::Module<WhisperInner> {
  WhisperInner(const Place& place, const WhisperPlan& plan)
      : Module(place, plan.encoder.name.type("Model")),
        encoder(child("encoder"), plan),
        decoder(child("decoder"), plan) {}

  Tensor forward(Tensor features, Tensor ids) {
    const Tensor states = encoder(features);
    return decoder(ids, states);
  }

  WhisperEncoder encoder;
  WhisperDecoder decoder;
};

struct WhisperModel : nn::Module<WhisperModel> {
  WhisperModel(const Place& place, const WhisperPlan& plan)
      : Module(place, plan.encoder.name.type("ForConditionalGeneration")),
        model(child("model"), plan),
        proj_out(plan.tied ? nn::Linear(child("proj_out"), model.decoder.embed_tokens.weight, false)
                           : nn::Linear(child("proj_out"), plan.decoder.hidden, plan.vocabulary, false)) {}

  Tensor forward(Tensor features, Tensor ids) {
    const Tensor hidden = model(features, ids);
    return proj_out(hidden);
  }

  WhisperInner model;
  nn::Linear proj_out;
};

struct BartPlan {
  StackPlan encoder, decoder;
  int64_t vocabulary, positions, padding;
  bool scales, tied;
};

// Positions begin at 2.
struct BartPositions : nn::Module<BartPositions> {
  BartPositions(const Place& place, const BartPlan& plan)
      : Module(place, plan.encoder.name.type("LearnedPositionalEmbedding")),
        weight(parameter("weight", {plan.positions + 2, plan.encoder.hidden})) {}
  Tensor forward(Tensor ids) {
    Tensor positions = nn::expand(arange(ids.size(1)), {ids.size(0), -1});
    return nn::call("embedding", weight, nn::call("add.Tensor", std::move(positions), 2));
  }
  Tensor weight;
};

struct BartWords : nn::Module<BartWords> {
  BartWords(const Place& place, const BartPlan& plan, const Tensor& shared)
      : Module(place, plan.encoder.name.type("ScaledWordEmbedding")),
        scale(plan.scales ? std::sqrt(static_cast<double>(plan.encoder.hidden)) : 1),
        padding(plan.padding),
        weight(shared.defined() ? tied("weight", shared)
                                : parameter("weight", {plan.vocabulary, plan.encoder.hidden})) {}
  Tensor forward(Tensor ids) { return nn::call("embedding", weight, ids, padding) * scale; }
  double scale;
  int64_t padding;
  Tensor weight;
};

struct BartStack : nn::Module<BartStack> {
  BartStack(const Place& place, const BartPlan& plan, const StackPlan& stack, const Tensor& shared)
      : Module(place, stack.name.type(stack.decodes ? "Decoder" : "Encoder")),
        dropout(stack.dropout),
        embed_tokens(child("embed_tokens"), plan, shared),
        embed_positions(child("embed_positions"), plan),
        layers(stack_layers(child("layers"), stack)),
        layernorm_embedding(child("layernorm_embedding"), stack.hidden) {}

  Tensor forward(Tensor ids, Tensor states) {
    const Tensor embedded = embed_tokens(ids);
    const Tensor places = embed_positions(ids);
    Tensor hidden = embedded + places;
    hidden = layernorm_embedding(hidden);
    hidden = nn::dropout(hidden, dropout);
    for (StackLayer& layer : layers) hidden = layer(hidden, states);
    return hidden;
  }

  double dropout;
  BartWords embed_tokens;
  BartPositions embed_positions;
  nn::ModuleList<StackLayer> layers;
  nn::LayerNorm layernorm_embedding;
};

struct BartInner : nn::Module<BartInner> {
  BartInner(const Place& place, const BartPlan& plan)
      : Module(place, plan.encoder.name.type("Model")),
        shared(child("shared"), plan, Tensor()),
        encoder(child("encoder"), plan, plan.encoder, shared.weight),
        decoder(child("decoder"), plan, plan.decoder, shared.weight) {}

  Tensor forward(Tensor ids, Tensor decoder_ids) {
    const Tensor states = encoder(ids, Tensor());
    return decoder(decoder_ids, states);
  }

  BartWords shared;
  BartStack encoder, decoder;
};

struct BartModel : nn::Module<BartModel> {
  BartModel(const Place& place, const BartPlan& plan)
      : Module(place, plan.encoder.name.type("ForConditionalGeneration")),
        model(child("model"), plan),
        lm_head(plan.tied ? nn::Linear(child("lm_head"), model.shared.weight, false)
                          : nn::Linear(child("lm_head"), plan.decoder.hidden, plan.vocabulary, false)),
        final_logits_bias(buffer("final_logits_bias", {1, plan.vocabulary}, DType::f32, true)) {}

  Tensor forward(Tensor ids, Tensor decoder_ids) {
    const Tensor hidden = model(ids, decoder_ids);
    const Tensor logits = lm_head(hidden);
    return logits + final_logits_bias;
  }

  BartInner model;
  nn::Linear lm_head;
  Tensor final_logits_bias;
};

void check_layerdrop(const Config& config) {
  for (const char* key : {"encoder_layerdrop", "decoder_layerdrop"})
    if (config.real({key}, 0) > 0) config.reject(key, "layers that are left out by chance are not built");
}

}  // namespace

Program whisper_program(const ConfigModel& model) {
  const Config& config = model.config;
  const FamilyName name{"whisper", "Whisper"};
  const WhisperPlan plan{.encoder = stack_plan(config, name, false, 384, 4, 6),
                         .decoder = stack_plan(config, name, true, 384, 4, 6),
                         .vocabulary = config.size({"vocab_size"}, 51865),
                         .bins = config.size({"num_mel_bins"}, 80),
                         .frames = config.size({"max_source_positions"}, 1500),
                         .positions = config.size({"max_target_positions"}, 448),
                         .padding = config.count({"pad_token_id"}, 50256),
                         .tied = config.flag({"tie_word_embeddings"}, true),
                         .scales = false};
  check_layerdrop(config);
  if (config.flag({"scale_embedding"}, false))
    config.reject("scale_embedding", "scaled embeddings are not built");
  ModelRecorder recorder(model);
  const Tensor features =
      recorder.input("input_features", DType::f32, {model.batch(), plan.bins, 2 * plan.frames});
  const Tensor ids =
      recorder.input("decoder_input_ids", DType::i64, {features.size(0), model.sequence(plan.positions)});
  const Tensor labels = recorder.input("labels", DType::i64, ids.sizes());
  WhisperModel made(recorder.root(), plan);
  const Tensor logits = made(features, ids);
  return recorder.finish(token_loss(logits, labels));
}

Program bart_program(const ConfigModel& model) {
  const Config& config = model.config;
  const FamilyName name{"bart", "Bart"};
  const BartPlan plan{.encoder = stack_plan(config, name, false, 1024, 12, 16),
                      .decoder = stack_plan(config, name, true, 1024, 12, 16),
                      .vocabulary = config.size({"vocab_size"}, 50265),
                      .positions = config.size({"max_position_embeddings"}, 1024),
                      .padding = config.count({"pad_token_id"}, 1),
                      .scales = config.flag({"scale_embedding"}, false),
                      .tied = config.flag({"tie_word_embeddings"}, true)};
  check_layerdrop(config);
  ModelRecorder recorder(model);
  const Tensor ids = recorder.input("input_ids", DType::i64, {model.batch(), model.sequence(plan.positions)});
  const Tensor decoder_ids =
      recorder.input("decoder_input_ids", DType::i64, {ids.size(0), std::max<int64_t>(ids.size(1) / 2, 1)});
  const Tensor labels = recorder.input("labels", DType::i64, decoder_ids.sizes());
  BartModel made(recorder.root(), plan);
  const Tensor logits = made(ids, decoder_ids);
  return recorder.finish(token_loss(logits, labels));
}

}  // namespace metaprof::configs
