// t5: an encoder and a decoder with a learned bias by relative position. Names and defaults: transformers 5.17,
// models/t5.

#include <cmath>
#include <optional>

#include "core/error.h"
#include "program/config/families.h"

namespace metaprof::configs {
namespace {

constexpr int64_t kUsualSequence = 512;  // the length of t5's own training; positions are relative

struct T5Plan {
  int64_t vocabulary, hidden, width, inner, layers, decoder_layers, heads, buckets, distance;
  double dropout, epsilon;
  bool tied, gated;
  std::string activation, where;
};

T5Plan t5_plan(const Config& config) {
  T5Plan plan{.vocabulary = config.size({"vocab_size"}, 32128),
              .hidden = config.size({"d_model", "hidden_size"}, 512),
              .width = config.size({"d_kv"}, 64),
              .inner = config.size({"d_ff"}, 2048),
              .layers = config.layers({"num_layers", "num_hidden_layers"}, 6),
              .decoder_layers = 0,
              .heads = config.size({"num_heads", "num_attention_heads"}, 8),
              .buckets = config.size({"relative_attention_num_buckets"}, 32),
              .distance = config.size({"relative_attention_max_distance"}, 128),
              .dropout = config.real({"dropout_rate"}, 0.1),
              .epsilon = config.real({"layer_norm_epsilon"}, 1e-6),
              .tied = config.flag({"tie_word_embeddings"}, true),
              .gated = false,
              .activation = {},
              .where = config.where()};
  plan.decoder_layers = config.layers({"num_decoder_layers"}, plan.layers);
  const std::string feed_forward = config.text({"feed_forward_proj"}, "relu");
  plan.gated = feed_forward.starts_with("gated-");
  plan.activation = feed_forward == "gated-gelu" ? "gelu_new" : feed_forward.substr(plan.gated ? 6 : 0);
  return plan;
}

std::string t5_type(const char* name) { return std::string("transformers.models.t5.modeling_t5.T5") + name; }

struct T5Norm : nn::Module<T5Norm> {
  T5Norm(const Place& place, const T5Plan& plan)
      : Module(place, t5_type("LayerNorm")),
        epsilon(plan.epsilon),
        weight(parameter("weight", {plan.hidden})) {}

  Tensor forward(Tensor hidden) const {
    const Tensor variance = nn::mean(nn::pow(nn::to(hidden, DType::f32), 2), -1, true);
    hidden = hidden * nn::rsqrt(variance + epsilon);
    hidden = nn::to(hidden, weight.dtype());
    return weight * hidden;
  }

  double epsilon;
  Tensor weight;
};

struct T5FeedForward : nn::Module<T5FeedForward> {
  T5FeedForward(const Place& place, const T5Plan& plan)
      : Module(place, t5_type(plan.gated ? "DenseGatedActDense" : "DenseActDense")),
        wi(child(plan.gated ? "wi_0" : "wi"), plan.hidden, plan.inner, false) {
    if (plan.gated) wi_1.emplace(child("wi_1"), plan.hidden, plan.inner, false);
    wo.emplace(child("wo"), plan.inner, plan.hidden, false);
    dropout.emplace(child("dropout"), plan.dropout);
    act.emplace(child("act"), plan.activation, plan.where);
  }

  Tensor forward(Tensor hidden) {
    if (wi_1) {
      const Tensor gate = (*act)(wi(hidden));
      const Tensor linear = (*wi_1)(hidden);
      hidden = gate * linear;
      return out(hidden);
    }
    hidden = wi(hidden);
    hidden = (*act)(hidden);
    return out(hidden);
  }

  Tensor out(Tensor& hidden) {
    hidden = (*dropout)(hidden);
    hidden = nn::to(hidden, wo->weight.dtype());
    return (*wo)(hidden);
  }

  nn::Linear wi;
  std::optional<nn::Linear> wi_1, wo;
  std::optional<nn::Dropout> dropout;
  std::optional<Activation> act;
};

struct T5FeedForwardLayer : nn::Module<T5FeedForwardLayer> {
  T5FeedForwardLayer(const Place& place, const T5Plan& plan)
      : Module(place, t5_type("LayerFF")),
        dense(child("DenseReluDense"), plan),
        layer_norm(child("layer_norm"), plan),
        dropout(child("dropout"), plan.dropout) {}

  Tensor forward(Tensor hidden) {
    Tensor forwarded = layer_norm(hidden);
    forwarded = dense(forwarded);
    return hidden + dropout(forwarded);
  }

  T5FeedForward dense;
  T5Norm layer_norm;
  nn::Dropout dropout;
};

struct T5Attention : nn::Module<T5Attention> {
  enum class Kind : uint8_t { encoder, decoder, cross };

  T5Attention(const Place& place, const T5Plan& plan, Kind kind, bool has_bias)
      : Module(place, t5_type("Attention")),
        kind(kind),
        plan(plan),
        q(child("q"), plan.hidden, plan.heads * plan.width, false),
        k(child("k"), plan.hidden, plan.heads * plan.width, false),
        v(child("v"), plan.hidden, plan.heads * plan.width, false),
        o(child("o"), plan.heads * plan.width, plan.hidden, false) {
    if (has_bias) relative_attention_bias.emplace(child("relative_attention_bias"), plan.buckets, plan.heads);
  }

  // The result, and the bias that later layers take: [1, heads, queries, keys].
  std::pair<Tensor, Tensor> forward(Tensor hidden, Tensor states, Tensor bias) {
    const Tensor query = split_heads(q(hidden), plan.width);
    const Tensor& from = kind == Kind::cross ? states : hidden;
    const Tensor key = split_heads(k(from), plan.width);
    const Tensor value = split_heads(v(from), plan.width);
    if (!bias.defined())
      bias = relative_attention_bias ? relative_bias(query.size(2), key.size(2)) : no_bias(query, key);
    Tensor output = attended(query, key, value, bias);
    output = nn::reshape(std::move(output), {hidden.size(0), hidden.size(1), -1});
    output = o(output);
    return {std::move(output), bias};
  }

  // Where a mask is needed and none is given, every layer makes the causal one (sdpa_attention.py,
  // create_position_bias_mask).
  Tensor attended(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias) {
    const Tensor mask = kind == Kind::decoder ? causal(bias, query.size(2), key.size(2)) : bias;
    return attend(query, key, value, {.mask = mask, .dropout = plan.dropout, .scale = 1.0});
  }

  Tensor causal(const Tensor& bias, int64_t queries, int64_t keys) const {
    const Tensor rows = nn::unsqueeze(arange(queries), 1);
    Tensor allowed = nn::call("ge.Tensor", rows, nn::unsqueeze(arange(keys), 0));
    allowed = nn::view(allowed, {1, 1, queries, keys});
    return nn::call("where.ScalarOther", allowed, bias, -3.4028234663852886e+38);
  }

  Tensor no_bias(const Tensor& query, const Tensor& key) const {
    nn::Argument given[] = {Sizes{1, plan.heads, query.size(2), key.size(2)}, query.dtype(), std::nullopt,
                            kModelDevice};
    return make("zeros", given);
  }

  Tensor relative_bias(int64_t queries, int64_t keys) {
    const Tensor context = nn::call("add.Tensor", nn::unsqueeze(arange(queries), 1), 0);
    const Tensor memory = nn::unsqueeze(arange(keys), 0);
    const Tensor relative = memory - context;
    const Tensor bucket = bucket_of(relative);
    Tensor values = (*relative_attention_bias)(bucket);
    return nn::unsqueeze(nn::permute(std::move(values), {2, 0, 1}), 0);
  }

  // T5Attention._relative_position_bucket
  Tensor bucket_of(Tensor position) const {
    Tensor buckets;
    int64_t count = plan.buckets;
    if (kind == Kind::encoder) {
      count /= 2;
      Tensor ahead = nn::to(nn::call("gt.Scalar", position, 0), DType::i64);
      buckets = nn::call("add.Tensor", nn::call("mul.Tensor", std::move(ahead), count), 0);
      position = nn::call("abs", position);
    } else {
      position = -nn::call("min.other", position, nn::call("zeros_like", position));
    }
    const int64_t exact = count / 2;
    const Tensor small = nn::call("lt.Scalar", position, exact);
    const double scale = std::log(static_cast<double>(plan.distance) / static_cast<double>(exact));
    Tensor large = nn::call("log", nn::call("div.Tensor", nn::to(position, DType::f32), exact));
    large = nn::to(nn::call("mul.Tensor", std::move(large) / scale, count - exact), DType::i64);
    large = nn::call("add.Tensor", std::move(large), exact);
    large = nn::call("min.other", large, nn::call("full_like", large, count - 1));
    Tensor chosen = nn::call("where.self", small, position, large);
    if (!buckets.defined()) return nn::call("add.Tensor", std::move(chosen), 0);
    return nn::call("add_.Tensor", buckets, std::move(chosen));
  }

  Kind kind;
  T5Plan plan;
  nn::Linear q, k, v, o;
  std::optional<nn::Embedding> relative_attention_bias;
};

struct T5AttentionLayer : nn::Module<T5AttentionLayer> {
  T5AttentionLayer(const Place& place, const T5Plan& plan, T5Attention::Kind kind, bool has_bias)
      : Module(place,
               t5_type(kind == T5Attention::Kind::cross ? "LayerCrossAttention" : "LayerSelfAttention")),
        attention(child(kind == T5Attention::Kind::cross ? "EncDecAttention" : "SelfAttention"), plan, kind,
                  has_bias),
        layer_norm(child("layer_norm"), plan),
        dropout(child("dropout"), plan.dropout) {}

  std::pair<Tensor, Tensor> forward(Tensor hidden, Tensor states, Tensor bias) {
    const Tensor normed = layer_norm(hidden);
    auto [output, next_bias] = attention(normed, states, bias);
    output = hidden + dropout(output);
    return {output, next_bias};
  }

  T5Attention attention;
  T5Norm layer_norm;
  nn::Dropout dropout;
};

struct T5Biases {
  Tensor self, cross;
};

struct T5Block : nn::Module<T5Block> {
  T5Block(const Place& place, const T5Plan& plan, bool decodes, bool first)
      : Module(place, t5_type("Block")), list(child("layer"), "torch.nn.modules.container.ModuleList") {
    using Kind = T5Attention::Kind;
    self.emplace(child("layer", 0), plan, decodes ? Kind::decoder : Kind::encoder, first);
    if (decodes) cross.emplace(child("layer", 1), plan, Kind::cross, false);
    feed_forward.emplace(child("layer", decodes ? 2 : 1), plan);
  }

  std::pair<Tensor, T5Biases> forward(Tensor hidden, Tensor states, T5Biases biases) {
    std::tie(hidden, biases.self) = (*self)(hidden, Tensor(), biases.self);
    if (cross) std::tie(hidden, biases.cross) = (*cross)(hidden, states, biases.cross);
    hidden = (*feed_forward)(hidden);
    return {hidden, biases};
  }

  nn::AnyModule list;
  std::optional<T5AttentionLayer> self, cross;
  std::optional<T5FeedForwardLayer> feed_forward;
};

struct T5Stack : nn::Module<T5Stack> {
  T5Stack(const Place& place, const T5Plan& plan, const Tensor& shared, bool decodes)
      : Module(place, t5_type("Stack")),
        embed_tokens(child("embed_tokens"), shared),
        block(child("block"), decodes ? plan.decoder_layers : plan.layers,
              [&](const Place& at, int64_t index) { return T5Block(at, plan, decodes, index == 0); }),
        final_layer_norm(child("final_layer_norm"), plan),
        dropout(child("dropout"), plan.dropout) {}

  // `states`: of the encoder, for a decoder.
  Tensor forward(Tensor ids, Tensor states) {
    const Tensor embedded = embed_tokens(ids);
    T5Biases biases;
    Tensor hidden = dropout(embedded);
    for (T5Block& each : block) std::tie(hidden, biases) = each(hidden, states, biases);
    hidden = final_layer_norm(hidden);
    return dropout(hidden);
  }

  nn::Embedding embed_tokens;
  nn::ModuleList<T5Block> block;
  T5Norm final_layer_norm;
  nn::Dropout dropout;
};

struct T5Model : nn::Module<T5Model> {
  T5Model(const Place& place, const T5Plan& plan)
      : Module(place, t5_type("ForConditionalGeneration")),
        scale(plan.tied ? 1 / std::sqrt(static_cast<double>(plan.hidden)) : 0),
        shared(child("shared"), plan.vocabulary, plan.hidden),
        encoder(child("encoder"), plan, shared.weight, false),
        decoder(child("decoder"), plan, shared.weight, true),
        lm_head(plan.tied ? nn::Linear(child("lm_head"), shared.weight, false)
                          : nn::Linear(child("lm_head"), plan.hidden, plan.vocabulary, false)) {}

  Tensor forward(Tensor ids, Tensor decoder_ids) {
    const Tensor states = encoder(ids, Tensor());
    const Tensor decoded = decoder(decoder_ids, states);
    Tensor output = decoded;
    if (scale > 0) output = output * scale;
    return lm_head(output);
  }

  double scale;
  nn::Embedding shared;
  T5Stack encoder, decoder;
  nn::Linear lm_head;
};

}  // namespace

Program t5_program(const ConfigModel& model) {
  const T5Plan plan = t5_plan(model.config);
  if (model.architecture("T5ForConditionalGeneration").ends_with("EncoderModel"))
    model.reject_architecture("T5ForConditionalGeneration");
  ModelRecorder recorder(model);
  const int64_t length = model.sequence(kUsualSequence);
  const Tensor ids = recorder.input("input_ids", DType::i64, {model.batch(), length});
  const Tensor decoder_ids =
      recorder.input("decoder_input_ids", DType::i64, {ids.size(0), std::max<int64_t>(length / 2, 1)});
  const Tensor labels = recorder.input("labels", DType::i64, decoder_ids.sizes());
  T5Model made(recorder.root(), plan);
  const Tensor logits = made(ids, decoder_ids);
  return recorder.finish(token_loss(logits, labels));
}

}  // namespace metaprof::configs
