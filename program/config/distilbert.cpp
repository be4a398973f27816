// distilbert. Names and defaults: transformers 5.17, models/distilbert.

#include <cmath>
#include <optional>

#include "program/config/families.h"

namespace metaprof::configs {
namespace {

struct DistilPlan {
  int64_t vocabulary, positions, hidden, inner, layers, heads, padding, labels;
  double dropout, attention_dropout, classifier_dropout;
  bool tied;
  std::string activation, where;
};

DistilPlan distil_plan(const ConfigModel& model) {
  const Config& config = model.config;
  DistilPlan plan{.vocabulary = config.size({"vocab_size"}, 30522),
                  .positions = config.size({"max_position_embeddings"}, 512),
                  .hidden = config.size({"dim", "hidden_size"}, 768),
                  .inner = config.size({"hidden_dim"}, 3072),
                  .layers = config.layers({"n_layers", "num_hidden_layers"}, 6),
                  .heads = config.size({"n_heads", "num_attention_heads"}, 12),
                  .padding = config.count({"pad_token_id"}, 0),
                  .labels = model.labels(),
                  .dropout = config.real({"dropout"}, 0.1),
                  .attention_dropout = config.real({"attention_dropout"}, 0.1),
                  .classifier_dropout = config.real({"seq_classif_dropout"}, 0.2),
                  .tied = config.flag({"tie_word_embeddings"}, true),
                  .activation = config.text({"activation"}, "gelu"),
                  .where = config.where()};
  (void)config.divided("dim", plan.hidden, "n_heads", plan.heads);
  return plan;
}

std::string distil_type(const char* name) {
  return std::string("transformers.models.distilbert.modeling_distilbert.") + name;
}

constexpr double kEpsilon = 1e-12;

struct DistilEmbeddings : nn::Module<DistilEmbeddings> {
  DistilEmbeddings(const Place& place, const DistilPlan& plan)
      : Module(place, distil_type("Embeddings")),
        word_embeddings(child("word_embeddings"), plan.vocabulary, plan.hidden, plan.padding),
        position_embeddings(child("position_embeddings"), plan.positions, plan.hidden),
        norm(child("LayerNorm"), plan.hidden, kEpsilon),
        dropout(child("dropout"), plan.dropout),
        position_ids(buffer("position_ids", {1, plan.positions}, DType::i64, false)) {}

  Tensor forward(Tensor ids) {
    const Tensor words = word_embeddings(ids);
    const Tensor positions = nn::slice(position_ids, 1, 0, words.size(1));
    const Tensor of_positions = position_embeddings(positions);
    Tensor embedded = words + of_positions;
    embedded = norm(embedded);
    return dropout(embedded);
  }

  nn::Embedding word_embeddings, position_embeddings;
  nn::LayerNorm norm;
  nn::Dropout dropout;
  Tensor position_ids;
};

struct DistilAttention : nn::Module<DistilAttention> {
  DistilAttention(const Place& place, const DistilPlan& plan)
      : Module(place, distil_type("DistilBertSelfAttention")),
        width(plan.hidden / plan.heads),
        q_lin(child("q_lin"), plan.hidden, plan.hidden),
        k_lin(child("k_lin"), plan.hidden, plan.hidden),
        v_lin(child("v_lin"), plan.hidden, plan.hidden),
        out_lin(child("out_lin"), plan.hidden, plan.hidden),
        dropout(child("dropout"), plan.attention_dropout) {}

  Tensor forward(Tensor hidden) {
    const Tensor query = split_heads(q_lin(hidden), width);
    const Tensor key = split_heads(k_lin(hidden), width);
    const Tensor value = split_heads(v_lin(hidden), width);
    Tensor output = attend(
        query, key, value,
        {.mask = {}, .dropout = dropout.probability, .scale = 1 / std::sqrt(static_cast<double>(width))});
    output = nn::reshape(std::move(output), {hidden.size(0), hidden.size(1), -1});
    return out_lin(output);
  }

  int64_t width;
  nn::Linear q_lin, k_lin, v_lin, out_lin;
  nn::Dropout dropout;
};

struct DistilFeedForward : nn::Module<DistilFeedForward> {
  DistilFeedForward(const Place& place, const DistilPlan& plan)
      : Module(place, distil_type("FFN")),
        dropout(child("dropout"), plan.dropout),
        lin1(child("lin1"), plan.hidden, plan.inner),
        lin2(child("lin2"), plan.inner, plan.hidden),
        activation(child("activation"), plan.activation, plan.where) {}

  Tensor forward(Tensor input) {
    Tensor x = lin1(input);
    x = activation(x);
    x = lin2(x);
    return dropout(x);
  }

  nn::Dropout dropout;
  nn::Linear lin1, lin2;
  Activation activation;
};

struct DistilBlock : nn::Module<DistilBlock> {
  DistilBlock(const Place& place, const DistilPlan& plan)
      : Module(place, distil_type("TransformerBlock")),
        attention(child("attention"), plan),
        sa_layer_norm(child("sa_layer_norm"), plan.hidden, kEpsilon),
        ffn(child("ffn"), plan),
        output_layer_norm(child("output_layer_norm"), plan.hidden, kEpsilon) {}

  Tensor forward(Tensor hidden) {
    Tensor attended = attention(hidden);
    attended = sa_layer_norm(attended + hidden);
    const Tensor fed = ffn(attended);
    return output_layer_norm(fed + attended);
  }

  DistilAttention attention;
  nn::LayerNorm sa_layer_norm;
  DistilFeedForward ffn;
  nn::LayerNorm output_layer_norm;
};

struct DistilTransformer : nn::Module<DistilTransformer> {
  DistilTransformer(const Place& place, const DistilPlan& plan)
      : Module(place, distil_type("Transformer")),
        layer(child("layer"), plan.layers, [&](const Place& at, int64_t) { return DistilBlock(at, plan); }) {}

  Tensor forward(Tensor hidden) {
    for (DistilBlock& block : layer) hidden = block(hidden);
    return hidden;
  }

  nn::ModuleList<DistilBlock> layer;
};

struct DistilModel : nn::Module<DistilModel> {
  DistilModel(const Place& place, const DistilPlan& plan)
      : Module(place, distil_type("DistilBertModel")),
        embeddings(child("embeddings"), plan),
        transformer(child("transformer"), plan) {}

  std::vector<Tensor> forward(Tensor ids) {
    const Tensor embedded = embeddings(ids);
    return {transformer(embedded)};
  }

  DistilEmbeddings embeddings;
  DistilTransformer transformer;
};

struct DistilMasked : nn::Module<DistilMasked> {
  DistilMasked(const Place& place, const DistilPlan& plan)
      : Module(place, distil_type("DistilBertForMaskedLM")),
        activation(child("activation"), plan.activation, plan.where),
        distilbert(child("distilbert"), plan),
        vocab_transform(child("vocab_transform"), plan.hidden, plan.hidden),
        vocab_layer_norm(child("vocab_layer_norm"), plan.hidden, kEpsilon),
        vocab_projector(plan.tied ? nn::Linear(child("vocab_projector"),
                                               distilbert.embeddings.word_embeddings.weight, true)
                                  : nn::Linear(child("vocab_projector"), plan.hidden, plan.vocabulary)) {}

  Tensor forward(Tensor ids) {
    const Tensor hidden = distilbert(ids).front();
    Tensor logits = vocab_transform(hidden);
    logits = activation(logits);
    logits = vocab_layer_norm(logits);
    return vocab_projector(logits);
  }

  Activation activation;
  DistilModel distilbert;
  nn::Linear vocab_transform;
  nn::LayerNorm vocab_layer_norm;
  nn::Linear vocab_projector;
};

struct DistilSequence : nn::Module<DistilSequence> {
  DistilSequence(const Place& place, const DistilPlan& plan)
      : Module(place, distil_type("DistilBertForSequenceClassification")),
        distilbert(child("distilbert"), plan),
        pre_classifier(child("pre_classifier"), plan.hidden, plan.hidden),
        classifier(child("classifier"), plan.hidden, plan.labels),
        dropout(child("dropout"), plan.classifier_dropout) {}

  Tensor forward(Tensor ids) {
    const Tensor hidden = distilbert(ids).front();
    Tensor pooled = nn::select(hidden, 1, 0);
    pooled = pre_classifier(pooled);
    pooled = nn::relu(pooled);
    pooled = dropout(pooled);
    return classifier(pooled);
  }

  DistilModel distilbert;
  nn::Linear pre_classifier, classifier;
  nn::Dropout dropout;
};

}  // namespace

Program distilbert_program(const ConfigModel& model) {
  const DistilPlan plan = distil_plan(model);
  const std::string architecture = model.architecture("DistilBertForMaskedLM");
  if (architecture.ends_with("ForMaskedLM"))
    return language_model_program<DistilMasked>(model, plan.positions, plan);
  if (architecture.ends_with("ForSequenceClassification"))
    return sequence_classifier_program<DistilSequence>(model, plan.positions, plan);
  if (architecture.ends_with("Model")) return feature_program<DistilModel>(model, plan.positions, plan);
  model.reject_architecture("DistilBertForMaskedLM, DistilBertForSequenceClassification and DistilBertModel");
}

}  // namespace metaprof::configs
