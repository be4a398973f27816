// albert: layers that are stored once and run many times. Names and defaults: transformers 5.17, models/albert.

#include <cmath>

#include "program/config/bert.h"

namespace metaprof::configs {
namespace {

struct AlbertPlan : BertPlan {
  int64_t groups, layers_of_group;
};

AlbertPlan albert_plan(const ConfigModel& model) {
  const Config& config = model.config;
  AlbertPlan plan{bert_plan(model, {"albert", "Albert"}), 0, 0};
  plan.vocabulary = config.size({"vocab_size"}, 30000);
  plan.embedded = config.size({"embedding_size"}, 128);
  plan.hidden = config.size({"hidden_size"}, 4096);
  plan.heads = config.size({"num_attention_heads"}, 64);
  plan.inner = config.size({"intermediate_size"}, 16384);
  plan.dropout = config.real({"hidden_dropout_prob"}, 0);
  plan.attention_dropout = config.real({"attention_probs_dropout_prob"}, 0);
  plan.classifier_dropout = config.real({"classifier_dropout_prob"}, 0.1);
  plan.activation = config.text({"hidden_act"}, "gelu_new");
  plan.groups = config.layers({"num_hidden_groups"}, 1);
  plan.layers_of_group = config.layers({"inner_group_num"}, 1);
  (void)config.divided("hidden_size", plan.hidden, "num_attention_heads", plan.heads);
  if (plan.groups > plan.layers) config.reject("num_hidden_groups", "more groups than layers");
  return plan;
}

struct AlbertAttention : nn::Module<AlbertAttention> {
  AlbertAttention(const Place& place, const AlbertPlan& plan)
      : Module(place, plan.name.type("Attention")),
        width(plan.width()),
        attention_dropout(child("attention_dropout"), plan.attention_dropout),
        output_dropout(child("output_dropout"), plan.dropout),
        query(child("query"), plan.hidden, plan.hidden),
        key(child("key"), plan.hidden, plan.hidden),
        value(child("value"), plan.hidden, plan.hidden),
        dense(child("dense"), plan.hidden, plan.hidden),
        norm(child("LayerNorm"), plan.hidden, plan.epsilon) {}

  Tensor forward(Tensor hidden) {
    const Tensor queries = split_heads(query(hidden), width);
    const Tensor keys = split_heads(key(hidden), width);
    const Tensor values = split_heads(value(hidden), width);
    Tensor output = attend(queries, keys, values,
                           {.mask = {},
                            .dropout = attention_dropout.probability,
                            .scale = 1 / std::sqrt(static_cast<double>(width))});
    output = nn::reshape(std::move(output), {hidden.size(0), hidden.size(1), -1});
    output = dense(output);
    output = output_dropout(output);
    return norm(hidden + output);
  }

  int64_t width;
  nn::Dropout attention_dropout, output_dropout;
  nn::Linear query, key, value, dense;
  nn::LayerNorm norm;
};

struct AlbertLayer : nn::Module<AlbertLayer> {
  AlbertLayer(const Place& place, const AlbertPlan& plan)
      : Module(place, plan.name.type("Layer")),
        full_layer_layer_norm(child("full_layer_layer_norm"), plan.hidden, plan.epsilon),
        attention(child("attention"), plan),
        ffn(child("ffn"), plan.hidden, plan.inner),
        ffn_output(child("ffn_output"), plan.inner, plan.hidden),
        activation(child("activation"), plan.activation, plan.where),
        dropout(child("dropout"), plan.dropout) {}

  Tensor forward(Tensor hidden) {
    const Tensor attended = attention(hidden);
    const Tensor fed = feed_forward(attended);
    return full_layer_layer_norm(fed + attended);
  }

  Tensor feed_forward(const Tensor& attended) {
    Tensor fed = ffn(attended);
    fed = activation(fed);
    return ffn_output(fed);
  }

  nn::LayerNorm full_layer_layer_norm;
  AlbertAttention attention;
  nn::Linear ffn, ffn_output;
  Activation activation;
  nn::Dropout dropout;
};

struct AlbertGroup : nn::Module<AlbertGroup> {
  AlbertGroup(const Place& place, const AlbertPlan& plan)
      : Module(place, plan.name.type("LayerGroup")),
        albert_layers(child("albert_layers"), plan.layers_of_group,
                      [&](const Place& at, int64_t) { return AlbertLayer(at, plan); }) {}

  Tensor forward(Tensor hidden) {
    for (AlbertLayer& layer : albert_layers) hidden = layer(hidden);
    return hidden;
  }

  nn::ModuleList<AlbertLayer> albert_layers;
};

struct AlbertTransformer : nn::Module<AlbertTransformer> {
  AlbertTransformer(const Place& place, const AlbertPlan& plan)
      : Module(place, plan.name.type("Transformer")),
        layers(plan.layers),
        embedding_hidden_mapping_in(child("embedding_hidden_mapping_in"), plan.embedded, plan.hidden),
        albert_layer_groups(child("albert_layer_groups"), plan.groups,
                            [&](const Place& at, int64_t) { return AlbertGroup(at, plan); }) {}

  Tensor forward(Tensor hidden) {
    hidden = embedding_hidden_mapping_in(hidden);
    const auto groups = static_cast<int64_t>(albert_layer_groups.size());
    for (int64_t i = 0; i < layers; ++i)
      hidden = albert_layer_groups[static_cast<size_t>(i * groups / layers)](hidden);
    return hidden;
  }

  int64_t layers;
  nn::Linear embedding_hidden_mapping_in;
  nn::ModuleList<AlbertGroup> albert_layer_groups;
};

struct AlbertModel : nn::Module<AlbertModel> {
  AlbertModel(const Place& place, const AlbertPlan& plan, bool pools)
      : Module(place, plan.name.type("Model")),
        embeddings(child("embeddings"), plan),
        encoder(child("encoder"), plan) {
    if (!pools) return;
    pooler.emplace(child("pooler"), plan.hidden, plan.hidden);
    pooler_activation.emplace(child("pooler_activation"), "tanh", plan.where);
  }
  AlbertModel(const Place& place, const AlbertPlan& plan) : AlbertModel(place, plan, true) {}

  std::vector<Tensor> forward(Tensor ids) {
    const Tensor embedded = embeddings(ids);
    const Tensor hidden = encoder(embedded);
    if (!pooler) return {hidden};
    const Tensor pooled = (*pooler_activation)((*pooler)(nn::select(hidden, 1, 0)));
    return {hidden, pooled};
  }

  BertEmbeddings embeddings;
  AlbertTransformer encoder;
  std::optional<nn::Linear> pooler;
  std::optional<Activation> pooler_activation;
};

struct AlbertHead : nn::Module<AlbertHead> {
  AlbertHead(const Place& place, const AlbertPlan& plan, const Tensor& embedding)
      : Module(place, plan.name.type("MLMHead")),
        norm(child("LayerNorm"), plan.embedded, plan.epsilon),
        bias(parameter("bias", {plan.vocabulary})),
        dense(child("dense"), plan.hidden, plan.embedded),
        decoder(tied_decoder(child("decoder"), plan, embedding, bias)),
        activation(child("activation"), plan.activation, plan.where) {}

  Tensor forward(Tensor hidden) {
    hidden = dense(hidden);
    hidden = activation(hidden);
    hidden = norm(hidden);
    return decoder(hidden);
  }

  nn::LayerNorm norm;
  Tensor bias;
  nn::Linear dense, decoder;
  Activation activation;
};

struct AlbertMasked : nn::Module<AlbertMasked> {
  AlbertMasked(const Place& place, const AlbertPlan& plan)
      : Module(place, plan.name.type("ForMaskedLM")),
        albert(child("albert"), plan, false),
        predictions(child("predictions"), plan, albert.embeddings.word_embeddings.weight) {}

  Tensor forward(Tensor ids) {
    const Tensor hidden = albert(ids).front();
    return predictions(hidden);
  }

  AlbertModel albert;
  AlbertHead predictions;
};

struct AlbertSequence : nn::Module<AlbertSequence> {
  AlbertSequence(const Place& place, const AlbertPlan& plan)
      : Module(place, plan.name.type("ForSequenceClassification")),
        albert(child("albert"), plan, true),
        dropout(child("dropout"), plan.classifier_dropout),
        classifier(child("classifier"), plan.hidden, plan.labels) {}

  Tensor forward(Tensor ids) {
    Tensor pooled = albert(ids).back();
    pooled = dropout(pooled);
    return classifier(pooled);
  }

  AlbertModel albert;
  nn::Dropout dropout;
  nn::Linear classifier;
};

}  // namespace

Program albert_program(const ConfigModel& model) {
  const AlbertPlan plan = albert_plan(model);
  const std::string architecture = model.architecture("AlbertForMaskedLM");
  if (architecture.ends_with("ForMaskedLM"))
    return language_model_program<AlbertMasked>(model, plan.positions, plan);
  if (architecture.ends_with("ForSequenceClassification"))
    return sequence_classifier_program<AlbertSequence>(model, plan.positions, plan);
  if (architecture.ends_with("Model")) return feature_program<AlbertModel>(model, plan.positions, plan);
  model.reject_architecture("AlbertForMaskedLM, AlbertForSequenceClassification and AlbertModel");
}

}  // namespace metaprof::configs
