// bert, roberta, xlm-roberta, electra: learned positions and types, norms behind the parts, heads for masked
// tokens, sequences and tokens. Names and defaults: transformers 5.17, models/bert, roberta, electra.

#include "program/config/bert.h"

#include <cmath>

namespace metaprof::configs {

BertPlan bert_plan(const ConfigModel& model, FamilyName name) {
  const Config& config = model.config;
  BertPlan plan{.name = std::move(name),
                .vocabulary = config.size({"vocab_size"}, 30522),
                .positions = config.size({"max_position_embeddings"}, 512),
                .types = config.count({"type_vocab_size"}, 2),
                .embedded = 0,
                .hidden = config.size({"hidden_size"}, 768),
                .inner = config.size({"intermediate_size"}, 3072),
                .layers = config.layers({"num_hidden_layers"}, 12),
                .heads = config.size({"num_attention_heads"}, 12),
                .padding = config.count({"pad_token_id"}, 0),
                .labels = model.labels(),
                .epsilon = config.real({"layer_norm_eps"}, 1e-12),
                .dropout = config.real({"hidden_dropout_prob"}, 0.1),
                .attention_dropout = config.real({"attention_probs_dropout_prob"}, 0.1),
                .classifier_dropout = 0,
                .tied = config.flag({"tie_word_embeddings"}, true),
                .activation = config.text({"hidden_act"}, "gelu"),
                .where = config.where()};
  plan.embedded = plan.hidden;
  plan.classifier_dropout = config.real({"classifier_dropout"}, plan.dropout);
  (void)config.divided("hidden_size", plan.hidden, "num_attention_heads", plan.heads);
  if (config.flag({"is_decoder"}, false))
    config.reject("is_decoder", "decoders of this family are not built");
  return plan;
}

BertEmbeddings::BertEmbeddings(const Place& place, const BertPlan& plan)
    : Module(place, plan.name.type("Embeddings")),
      word_embeddings(child("word_embeddings"), plan.vocabulary, plan.embedded, plan.padding),
      padding(plan.padding),
      counted(plan.name.prefix.ends_with("Roberta") || plan.name.prefix.ends_with("RoBERTa")) {
  if (!counted) position_embeddings.emplace(child("position_embeddings"), plan.positions, plan.embedded);
  token_type_embeddings.emplace(child("token_type_embeddings"), plan.types, plan.embedded);
  norm.emplace(child("LayerNorm"), plan.embedded, plan.epsilon);
  dropout.emplace(child("dropout"), plan.dropout);
  if (counted)
    position_embeddings.emplace(child("position_embeddings"), plan.positions, plan.embedded, plan.padding);
  position_ids = buffer("position_ids", {1, plan.positions}, DType::i64, false);
  token_type_ids = buffer("token_type_ids", {1, plan.positions}, DType::i64, false);
}

Tensor BertEmbeddings::positions_of_tokens(const Tensor& ids) {
  if (!counted) return nn::slice(position_ids, 1, 0, ids.size(1));
  const Tensor mask = nn::to(nn::call("ne.Scalar", ids, padding), DType::i32);
  Tensor counts = nn::call("type_as", nn::call("cumsum", mask, 1), mask);
  counts = nn::call("add.Tensor", std::move(counts), 0) * mask;
  return nn::call("add.Tensor", nn::to(std::move(counts), DType::i64), padding);
}

Tensor BertEmbeddings::forward(Tensor ids) {
  const Tensor positions = positions_of_tokens(ids);
  Tensor types = nn::expand(token_type_ids, {positions.size(0), -1});
  types = nn::call("gather", std::move(types), 1, positions);
  types = nn::expand(types, {ids.size(0), ids.size(1)});
  const Tensor words = word_embeddings(ids);
  const Tensor of_types = (*token_type_embeddings)(types);
  Tensor embedded = words + of_types;
  const Tensor of_positions = (*position_embeddings)(positions);
  embedded = embedded + of_positions;
  embedded = (*norm)(embedded);
  return (*dropout)(embedded);
}

nn::Linear tied_decoder(const Place& place, const BertPlan& plan, const Tensor& embedding,
                        const Tensor& bias) {
  if (plan.tied) return {place, embedding, bias};
  return {place, plan.embedded, plan.vocabulary};
}

namespace {

struct BertSelfAttention : nn::Module<BertSelfAttention> {
  BertSelfAttention(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("SelfAttention")),
        width(plan.width()),
        query(child("query"), plan.hidden, plan.hidden),
        key(child("key"), plan.hidden, plan.hidden),
        value(child("value"), plan.hidden, plan.hidden),
        dropout(child("dropout"), plan.attention_dropout) {}

  Tensor forward(Tensor hidden) {
    const Tensor queries = split_heads(query(hidden), width);
    const Tensor keys = split_heads(key(hidden), width);
    const Tensor values = split_heads(value(hidden), width);
    Tensor output = attend(
        queries, keys, values,
        {.mask = {}, .dropout = dropout.probability, .scale = 1 / std::sqrt(static_cast<double>(width))});
    return nn::reshape(std::move(output), {hidden.size(0), hidden.size(1), -1});
  }

  int64_t width;
  nn::Linear query, key, value;
  nn::Dropout dropout;
};

// dense, dropout, and a norm of the sum with what went in.
struct BertOutput : nn::Module<BertOutput> {
  BertOutput(const Place& place, const BertPlan& plan, const char* type, int64_t in)
      : Module(place, plan.name.type(type)),
        dense(child("dense"), in, plan.hidden),
        norm(child("LayerNorm"), plan.hidden, plan.epsilon),
        dropout(child("dropout"), plan.dropout) {}

  Tensor forward(Tensor hidden, Tensor input) {
    hidden = dense(hidden);
    hidden = dropout(hidden);
    return norm(hidden + input);
  }

  nn::Linear dense;
  nn::LayerNorm norm;
  nn::Dropout dropout;
};

struct BertAttention : nn::Module<BertAttention> {
  BertAttention(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("Attention")),
        self(child("self"), plan),
        output(child("output"), plan, "SelfOutput", plan.hidden) {}

  Tensor forward(Tensor hidden) {
    const Tensor attended = self(hidden);
    return output(attended, hidden);
  }

  BertSelfAttention self;
  BertOutput output;
};

struct BertLayer : nn::Module<BertLayer> {
  BertLayer(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("Layer")),
        attention(child("attention"), plan),
        intermediate(child("intermediate"), plan),
        output(child("output"), plan, "Output", plan.inner) {}

  Tensor forward(Tensor hidden) {
    const Tensor attended = attention(hidden);
    const Tensor inner = intermediate(attended);
    return output(inner, attended);
  }

  BertAttention attention;
  BertIntermediate intermediate;
  BertOutput output;
};

struct BertEncoder : nn::Module<BertEncoder> {
  BertEncoder(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("Encoder")),
        layer(child("layer"), plan.layers, [&](const Place& at, int64_t) { return BertLayer(at, plan); }) {}

  Tensor forward(Tensor hidden) {
    for (BertLayer& each : layer) hidden = each(hidden);
    return hidden;
  }

  nn::ModuleList<BertLayer> layer;
};

struct BertPooler : nn::Module<BertPooler> {
  BertPooler(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("Pooler")),
        dense(child("dense"), plan.hidden, plan.hidden),
        activation(child("activation"), "tanh", plan.where) {}

  Tensor forward(Tensor hidden) {
    const Tensor first = nn::select(hidden, 1, 0);
    const Tensor pooled = dense(first);
    return activation(pooled);
  }

  nn::Linear dense;
  Activation activation;
};

struct BertModel : nn::Module<BertModel> {
  BertModel(const Place& place, const BertPlan& plan, bool pools)
      : Module(place, plan.name.type("Model")), embeddings(child("embeddings"), plan) {
    if (plan.embedded != plan.hidden)
      embeddings_project.emplace(child("embeddings_project"), plan.embedded, plan.hidden);
    encoder.emplace(child("encoder"), plan);
    if (pools) pooler.emplace(child("pooler"), plan);
  }
  BertModel(const Place& place, const BertPlan& plan)
      : BertModel(place, plan, plan.name.prefix != "Electra") {}

  // The last hidden state, and what the pooler makes of it.
  std::vector<Tensor> forward(Tensor ids) {
    Tensor embedded = embeddings(ids);
    if (embeddings_project) embedded = (*embeddings_project)(embedded);
    const Tensor hidden = (*encoder)(embedded);
    if (!pooler) return {hidden};
    const Tensor pooled = (*pooler)(hidden);
    return {hidden, pooled};
  }

  BertEmbeddings embeddings;
  std::optional<nn::Linear> embeddings_project;
  std::optional<BertEncoder> encoder;
  std::optional<BertPooler> pooler;
};

// The attribute under which a class keeps its model: bert, roberta, electra.
std::string model_name(const BertPlan& plan) {
  return plan.name.prefix == "Bert" ? "bert" : plan.name.prefix == "Electra" ? "electra" : "roberta";
}

struct BertTransform : nn::Module<BertTransform> {
  BertTransform(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("PredictionHeadTransform")),
        dense(child("dense"), plan.hidden, plan.hidden),
        transform_act_fn(child("transform_act_fn"), plan.activation, plan.where),
        norm(child("LayerNorm"), plan.hidden, plan.epsilon) {}

  Tensor forward(Tensor hidden) {
    hidden = dense(hidden);
    hidden = transform_act_fn(hidden);
    return norm(hidden);
  }

  nn::Linear dense;
  Activation transform_act_fn;
  nn::LayerNorm norm;
};

struct BertPredictions : nn::Module<BertPredictions> {
  BertPredictions(const Place& place, const BertPlan& plan, const Tensor& embedding)
      : Module(place, plan.name.type("LMPredictionHead")),
        transform(child("transform"), plan),
        bias(parameter("bias", {plan.vocabulary})),
        decoder(tied_decoder(child("decoder"), plan, embedding, bias)) {}

  Tensor forward(Tensor hidden) {
    hidden = transform(hidden);
    return decoder(hidden);
  }

  BertTransform transform;
  Tensor bias;
  nn::Linear decoder;
};

struct BertHead : nn::Module<BertHead> {
  BertHead(const Place& place, const BertPlan& plan, const Tensor& embedding)
      : Module(place, plan.name.type("OnlyMLMHead")), predictions(child("predictions"), plan, embedding) {}
  Tensor forward(Tensor hidden) { return predictions(hidden); }
  BertPredictions predictions;
};

struct RobertaHead : nn::Module<RobertaHead> {
  RobertaHead(const Place& place, const BertPlan& plan, const Tensor& embedding)
      : Module(place, plan.name.type("LMHead")),
        dense(child("dense"), plan.hidden, plan.hidden),
        layer_norm(child("layer_norm"), plan.hidden, plan.epsilon),
        bias(parameter("bias", {plan.vocabulary})),
        decoder(tied_decoder(child("decoder"), plan, embedding, bias)) {}

  Tensor forward(Tensor hidden) {
    hidden = dense(hidden);
    hidden = nn::gelu(hidden);
    hidden = layer_norm(hidden);
    return decoder(hidden);
  }

  nn::Linear dense;
  nn::LayerNorm layer_norm;
  Tensor bias;
  nn::Linear decoder;
};

// BertForMaskedLM, RobertaForMaskedLM. Head: made of a place, the plan and the embedding.
template <class Head>
struct MaskedModel : nn::Module<MaskedModel<Head>> {
  MaskedModel(const Place& place, const BertPlan& plan, const char* head_name)
      : nn::Module<MaskedModel>(place, plan.name.type("ForMaskedLM")),
        model(this->child(model_name(plan)), plan, false),
        head(this->child(head_name), plan, model.embeddings.word_embeddings.weight) {}

  Tensor forward(Tensor ids) {
    const Tensor hidden = model(ids).front();
    return head(hidden);
  }

  BertModel model;
  Head head;
};

struct ElectraGenerator : nn::Module<ElectraGenerator> {
  ElectraGenerator(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("GeneratorPredictions")),
        activation(child("activation"), "gelu", plan.where),
        norm(child("LayerNorm"), plan.embedded, plan.epsilon),
        dense(child("dense"), plan.hidden, plan.embedded) {}

  Tensor forward(Tensor hidden) {
    hidden = dense(hidden);
    hidden = activation(hidden);
    return norm(hidden);
  }

  Activation activation;
  nn::LayerNorm norm;
  nn::Linear dense;
};

struct ElectraMasked : nn::Module<ElectraMasked> {
  ElectraMasked(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("ForMaskedLM")),
        electra(child("electra"), plan, false),
        generator_predictions(child("generator_predictions"), plan),
        generator_lm_head(
            plan.tied
                ? nn::Linear(child("generator_lm_head"), electra.embeddings.word_embeddings.weight, true)
                : nn::Linear(child("generator_lm_head"), plan.embedded, plan.vocabulary)) {}

  Tensor forward(Tensor ids) {
    const Tensor hidden = electra(ids).front();
    const Tensor predicted = generator_predictions(hidden);
    return generator_lm_head(predicted);
  }

  BertModel electra;
  ElectraGenerator generator_predictions;
  nn::Linear generator_lm_head;
};

struct ElectraDiscriminator : nn::Module<ElectraDiscriminator> {
  ElectraDiscriminator(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("DiscriminatorPredictions")),
        dense(child("dense"), plan.hidden, plan.hidden),
        activation(child("activation"), plan.activation, plan.where),
        dense_prediction(child("dense_prediction"), plan.hidden, 1) {}

  Tensor forward(Tensor hidden) {
    hidden = dense(hidden);
    hidden = activation(hidden);
    return nn::squeeze(dense_prediction(hidden), -1);
  }

  nn::Linear dense;
  Activation activation;
  nn::Linear dense_prediction;
};

// Token ids → [batch, positions]: which tokens were replaced.
struct ElectraPreTraining : nn::Module<ElectraPreTraining> {
  ElectraPreTraining(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("ForPreTraining")),
        electra(child("electra"), plan, false),
        discriminator_predictions(child("discriminator_predictions"), plan) {}

  Tensor forward(Tensor ids) {
    const Tensor hidden = electra(ids).front();
    return discriminator_predictions(hidden);
  }

  BertModel electra;
  ElectraDiscriminator discriminator_predictions;
};

// The head of roberta and electra: the first token, through two layers.
struct ClassificationHead : nn::Module<ClassificationHead> {
  ClassificationHead(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("ClassificationHead")),
        gelu(plan.name.prefix == "Electra"),
        dense(child("dense"), plan.hidden, plan.hidden),
        dropout(child("dropout"), plan.classifier_dropout),
        out_proj(child("out_proj"), plan.hidden, plan.labels) {}

  Tensor forward(Tensor features) {
    Tensor x = nn::select(features, 1, 0);
    x = dropout(x);
    x = dense(x);
    x = gelu ? nn::gelu(x) : nn::tanh(x);
    x = dropout(x);
    return out_proj(x);
  }

  bool gelu;
  nn::Linear dense;
  nn::Dropout dropout;
  nn::Linear out_proj;
};

struct SequenceModel : nn::Module<SequenceModel> {
  SequenceModel(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("ForSequenceClassification")),
        model(child(model_name(plan)), plan, plan.name.prefix == "Bert") {
    if (model.pooler) {
      dropout.emplace(child("dropout"), plan.classifier_dropout);
      linear.emplace(child("classifier"), plan.hidden, plan.labels);
    } else {
      head.emplace(child("classifier"), plan);
    }
  }

  Tensor forward(Tensor ids) {
    const std::vector<Tensor> outputs = model(ids);
    if (head) return (*head)(outputs.front());
    Tensor pooled = outputs.back();
    pooled = (*dropout)(pooled);
    return (*linear)(pooled);
  }

  BertModel model;
  std::optional<nn::Dropout> dropout;
  std::optional<nn::Linear> linear;
  std::optional<ClassificationHead> head;
};

struct TokenModel : nn::Module<TokenModel> {
  TokenModel(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("ForTokenClassification")),
        model(child(model_name(plan)), plan, false),
        dropout(child("dropout"), plan.classifier_dropout),
        classifier(child("classifier"), plan.hidden, plan.labels) {}

  Tensor forward(Tensor ids) {
    Tensor hidden = model(ids).front();
    hidden = dropout(hidden);
    return classifier(hidden);
  }

  BertModel model;
  nn::Dropout dropout;
  nn::Linear classifier;
};

Program pretraining_program(const ConfigModel& model, const BertPlan& plan) {
  ModelRecorder recorder(model);
  const Tensor ids = recorder.input("input_ids", DType::i64, {model.batch(), model.sequence(plan.positions)});
  const Tensor labels = recorder.input("labels", DType::i64, ids.sizes());
  ElectraPreTraining made(recorder.root(), plan);
  const Tensor logits = made(ids);
  Tensor rows = nn::view(logits, {-1, ids.size(1)});
  Tensor replaced = nn::to(labels, DType::f32);
  return recorder.finish(nn::call("binary_cross_entropy_with_logits", std::move(rows), std::move(replaced)));
}

// The classes that all of these families have.
Program program_of_class(const ConfigModel& model, const BertPlan& plan, std::string_view usual) {
  const std::string architecture = model.architecture(usual);
  const std::string_view head = std::string_view(architecture);
  if (head.ends_with("ForSequenceClassification"))
    return sequence_classifier_program<SequenceModel>(model, plan.positions, plan);
  if (head.ends_with("ForTokenClassification"))
    return language_model_program<TokenModel>(model, plan.positions, plan);
  if (head.ends_with("Model")) return feature_program<BertModel>(model, plan.positions, plan);
  model.reject_architecture("…ForMaskedLM, …ForSequenceClassification, …ForTokenClassification and …Model");
}

}  // namespace

Program bert_program(const ConfigModel& model) {
  const BertPlan plan = bert_plan(model, {"bert", "Bert"});
  if (model.architecture("BertForMaskedLM").ends_with("ForMaskedLM"))
    return language_model_program<MaskedModel<BertHead>>(model, plan.positions, plan, "cls");
  return program_of_class(model, plan, "BertForMaskedLM");
}

// xlm-roberta is roberta under another name.
Program roberta_program(const ConfigModel& model) {
  const bool crosslingual = model.config.text({"model_type"}, "") == "xlm-roberta";
  BertPlan plan = bert_plan(
      model, crosslingual ? FamilyName{"xlm_roberta", "XLMRoberta"} : FamilyName{"roberta", "Roberta"});
  plan.padding = model.config.count({"pad_token_id"}, 1);
  // The first positions are those of padding and of what comes before.
  const int64_t usable = std::max<int64_t>(plan.positions - plan.padding - 1, 1);
  if (model.architecture("RobertaForMaskedLM").ends_with("ForMaskedLM"))
    return language_model_program<MaskedModel<RobertaHead>>(model, usable, plan, "lm_head");
  return program_of_class(model, plan, "RobertaForMaskedLM");
}

Program electra_program(const ConfigModel& model) {
  const Config& config = model.config;
  BertPlan plan = bert_plan(model, {"electra", "Electra"});
  plan.hidden = config.size({"hidden_size"}, 256);
  plan.inner = config.size({"intermediate_size"}, 1024);
  plan.heads = config.size({"num_attention_heads"}, 4);
  plan.embedded = config.size({"embedding_size"}, 128);
  (void)config.divided("hidden_size", plan.hidden, "num_attention_heads", plan.heads);
  const std::string architecture = model.architecture("ElectraForPreTraining");
  if (architecture.ends_with("ForPreTraining")) return pretraining_program(model, plan);
  if (architecture.ends_with("ForMaskedLM"))
    return language_model_program<ElectraMasked>(model, plan.positions, plan);
  return program_of_class(model, plan, architecture);
}

}  // namespace metaprof::configs
