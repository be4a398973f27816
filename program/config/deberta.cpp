// deberta-v2 and v3: scores of attention have two more terms, of contents with relative positions. Names and defaults:
// transformers 5.17, models/deberta_v2.

#include "program/config/deberta.h"

#include <algorithm>
#include <cmath>

#include "program/config/bert.h"

namespace metaprof::configs {
namespace {

struct DebertaPlan {
  BertPlan bert;
  bool relative = false;  ///< scores have terms of relative positions; which: the next two
  bool content_to_position = false, position_to_content = false;
  bool shares_keys = false, normed_positions = false, adds_positions = true;
  int64_t span = 0;     ///< relative positions to each side
  int64_t buckets = 0;  ///< 0: each position is one of its own
};

// "p2c|c2p" or a list.
bool has_term(const Config& config, const char* term) {
  return std::ranges::any_of(config.texts("pos_att_type"),
                             [&](const std::string& text) { return text.find(term) != std::string::npos; });
}

DebertaPlan deberta_plan(const ConfigModel& model) {
  const Config& config = model.config;
  DebertaPlan plan;
  plan.bert = bert_plan(model, {"deberta_v2", "DebertaV2"});
  BertPlan& bert = plan.bert;
  bert.vocabulary = config.size({"vocab_size"}, 128100);
  bert.hidden = bert.embedded = config.size({"hidden_size"}, 1536);
  bert.inner = config.size({"intermediate_size"}, 6144);
  bert.layers = config.layers({"num_hidden_layers"}, 24);
  bert.heads = config.size({"num_attention_heads"}, 24);
  bert.types = config.count({"type_vocab_size"}, 0);
  bert.epsilon = config.real({"layer_norm_eps"}, 1e-7);
  (void)config.divided("hidden_size", bert.hidden, "num_attention_heads", bert.heads);
  if (config.size({"embedding_size"}, bert.hidden) != bert.hidden)
    config.reject("embedding_size", "embeddings of another width than hidden_size are not built");
  if (config.count({"conv_kernel_size"}, 0) > 0)
    config.reject("conv_kernel_size", "convolutions are not built");
  if (!config.flag({"legacy"}, true)) config.reject("legacy", "the head without it is not built");
  plan.relative = config.flag({"relative_attention"}, false);
  plan.content_to_position = plan.relative && has_term(config, "c2p");
  plan.position_to_content = plan.relative && has_term(config, "p2c");
  plan.shares_keys = config.flag({"share_att_key"}, false);
  plan.normed_positions = config.text({"norm_rel_ebd"}, "none").find("layer_norm") != std::string::npos;
  plan.adds_positions = config.flag({"position_biased_input"}, true);
  const double most = config.real({"max_relative_positions"}, -1),
               buckets = config.real({"position_buckets"}, -1);
  plan.buckets = buckets > 0 ? config.size({"position_buckets"}, 1) : 0;
  plan.span = plan.buckets > 0 ? plan.buckets
              : most >= 1      ? config.size({"max_relative_positions"}, 1)
                               : bert.positions;
  return plan;
}

struct DebertaEmbeddings : nn::Module<DebertaEmbeddings> {
  DebertaEmbeddings(const Place& place, const DebertaPlan& plan)
      : Module(place, plan.bert.name.type("Embeddings")),
        word_embeddings(child("word_embeddings"), plan.bert.vocabulary, plan.bert.hidden, plan.bert.padding) {
    const BertPlan& bert = plan.bert;
    if (plan.adds_positions)
      position_embeddings.emplace(child("position_embeddings"), bert.positions, bert.hidden);
    if (bert.types > 0)
      token_type_embeddings.emplace(child("token_type_embeddings"), bert.types, bert.hidden);
    norm.emplace(child("LayerNorm"), bert.hidden, bert.epsilon);
    dropout.emplace(child("dropout"), bert.dropout);
    position_ids = buffer("position_ids", {1, bert.positions}, DType::i64, false);
  }

  Tensor forward(Tensor ids, Tensor mask) {
    const Tensor positions = nn::slice(position_ids, 1, 0, ids.size(1));
    nn::Argument zeros[] = {ids.sizes(), DType::i64, std::nullopt, kModelDevice};
    const Tensor types = make("zeros", zeros);
    const Tensor words = word_embeddings(ids);
    const Tensor places =
        position_embeddings ? (*position_embeddings)(positions) : nn::call("zeros_like", words);
    Tensor embedded = words;
    if (position_embeddings) embedded = embedded + places;
    if (token_type_embeddings) embedded = embedded + (*token_type_embeddings)(types);
    embedded = (*norm)(embedded);
    embedded = embedded * nn::to(nn::unsqueeze(mask, 2), embedded.dtype());
    return (*dropout)(embedded);
  }

  nn::Embedding word_embeddings;
  std::optional<nn::Embedding> position_embeddings, token_type_embeddings;
  std::optional<nn::LayerNorm> norm;
  std::optional<nn::Dropout> dropout;
  Tensor position_ids;
};

// What all layers get besides the hidden states.
struct Relative {
  Tensor mask;       ///< [batch, 1, positions, positions]
  Tensor positions;  ///< i64[1, positions, positions], of keys from queries
  Tensor embedded;   ///< [2 · span, hidden]
};

struct DebertaSelfAttention : nn::Module<DebertaSelfAttention> {
  DebertaSelfAttention(const Place& place, const DebertaPlan& deberta)
      : Module(place, "transformers.models.deberta_v2.modeling_deberta_v2.DisentangledSelfAttention"),
        plan(deberta),
        heads(plan.bert.heads),
        query_proj(child("query_proj"), plan.bert.hidden, plan.bert.hidden),
        key_proj(child("key_proj"), plan.bert.hidden, plan.bert.hidden),
        value_proj(child("value_proj"), plan.bert.hidden, plan.bert.hidden) {
    if (plan.relative) pos_dropout.emplace(child("pos_dropout"), plan.bert.dropout);
    if (plan.content_to_position && !plan.shares_keys)
      pos_key_proj.emplace(child("pos_key_proj"), plan.bert.hidden, plan.bert.hidden);
    if (plan.position_to_content && !plan.shares_keys)
      pos_query_proj.emplace(child("pos_query_proj"), plan.bert.hidden, plan.bert.hidden);
    dropout.emplace(child("dropout"), plan.bert.attention_dropout);
  }

  // [batch, positions, hidden] → [batch · heads, positions, width]
  Tensor by_heads(Tensor x) const {
    const int64_t rows = x.size(1), width = x.size(2) / heads;
    const Sizes sizes{x.size(0), rows, heads, width};
    x = nn::contiguous(nn::permute(nn::view(std::move(x), sizes), {0, 2, 1, 3}));
    return nn::view(std::move(x), {-1, rows, width});
  }

  Tensor scale_of(const Tensor& x, nn::DTypeOf dtype) const {
    const int64_t terms = 1 + (plan.content_to_position ? 1 : 0) + (plan.position_to_content ? 1 : 0);
    nn::Argument given[] = {Sizes{}, static_cast<double>(x.size(-1) * terms), DType::f32, std::nullopt,
                            Device{}};
    return nn::to(nn::call("sqrt", make("full", given)), dtype);
  }

  Tensor forward(Tensor hidden, Relative relative) {
    const Tensor query = by_heads(query_proj(hidden));
    const Tensor key = by_heads(key_proj(hidden));
    const Tensor value = by_heads(value_proj(hidden));
    Tensor scores = scaled_product(query, key);
    if (plan.relative) scores = with_positions(scores, query, key, relative);
    const int64_t length = scores.size(-1);
    scores = nn::view(std::move(scores), {-1, heads, length, length});
    const Tensor allowed = nn::to(relative.mask, DType::b8);
    scores = nn::call("masked_fill.Scalar", scores, nn::call("bitwise_not", allowed), -3.4e38);
    Tensor probabilities = nn::softmax(scores, -1);
    probabilities = (*dropout)(probabilities);
    Tensor output = nn::call("bmm", nn::view(probabilities, {-1, length, length}), value);
    output = nn::view(std::move(output), {-1, heads, length, value.size(-1)});
    output = nn::contiguous(nn::permute(std::move(output), {0, 2, 1, 3}));
    return nn::view(std::move(output), {hidden.size(0), length, -1});
  }

  Tensor scaled_product(const Tensor& query, const Tensor& key) const {
    const Tensor scale = scale_of(query, query.dtype());
    const Tensor scaled = nn::transpose(key, -1, -2) / scale;
    return nn::call("bmm", query, scaled);
  }

  // disentangled_attention_bias
  Tensor with_positions(const Tensor& scores, const Tensor& query, const Tensor& key,
                        const Relative& relative) {
    const Tensor embedded = (*pos_dropout)(relative.embedded);
    const Tensor rows = nn::unsqueeze(nn::slice(embedded, 0, 0, 2 * plan.span), 0);
    const Sizes times{query.size(0) / heads, 1, 1};
    Tensor queries, keys;
    if (plan.position_to_content || plan.shares_keys)
      queries =
          nn::call("repeat", by_heads(pos_query_proj ? (*pos_query_proj)(rows) : query_proj(rows)), times);
    if (plan.content_to_position || plan.shares_keys)
      keys = nn::call("repeat", by_heads(pos_key_proj ? (*pos_key_proj)(rows) : key_proj(rows)), times);
    Tensor bias;
    if (plan.content_to_position) bias = term(query, keys, relative.positions, false);
    if (plan.position_to_content) {
      Tensor other = term(key, queries, -relative.positions, true);
      bias = bias.defined() ? nn::call("add_.Tensor", bias, std::move(other)) : other;
    }
    return bias.defined() ? scores + bias : scores;
  }

  // Products with all positions, of which each pair takes its own.
  Tensor term(const Tensor& contents, const Tensor& rows, Tensor positions, bool turned) const {
    const Tensor scale = scale_of(rows, contents.dtype());
    const Tensor products = nn::call("bmm", contents, nn::transpose(rows, -1, -2));
    const Tensor index =
        nn::call("clamp", nn::call("add.Tensor", std::move(positions), plan.span), 0, 2 * plan.span - 1);
    const int64_t length = contents.size(1);
    Tensor taken = nn::call("gather", products, -1, nn::expand(index, {contents.size(0), length, length}));
    if (turned) taken = nn::transpose(std::move(taken), -1, -2);
    return std::move(taken) / scale;
  }

  DebertaPlan plan;
  int64_t heads;
  nn::Linear query_proj, key_proj, value_proj;
  std::optional<nn::Dropout> pos_dropout, dropout;
  std::optional<nn::Linear> pos_key_proj, pos_query_proj;
};

// A linear layer, dropout, and a norm of the sum with what came in.
struct DebertaOutput : nn::Module<DebertaOutput> {
  DebertaOutput(const Place& place, const BertPlan& plan, const char* type, int64_t in)
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

struct DebertaAttention : nn::Module<DebertaAttention> {
  DebertaAttention(const Place& place, const DebertaPlan& plan)
      : Module(place, plan.bert.name.type("Attention")),
        self(child("self"), plan),
        output(child("output"), plan.bert, "SelfOutput", plan.bert.hidden) {}
  Tensor forward(Tensor hidden, Relative relative) {
    const Tensor attended = self(hidden, relative);
    return output(attended, hidden);
  }
  DebertaSelfAttention self;
  DebertaOutput output;
};

struct DebertaLayer : nn::Module<DebertaLayer> {
  DebertaLayer(const Place& place, const DebertaPlan& plan)
      : Module(place, plan.bert.name.type("Layer")),
        attention(child("attention"), plan),
        intermediate(child("intermediate"), plan.bert),
        output(child("output"), plan.bert, "Output", plan.bert.inner) {}
  Tensor forward(Tensor hidden, Relative relative) {
    const Tensor attended = attention(hidden, relative);
    const Tensor inner = intermediate(attended);
    return output(inner, attended);
  }
  DebertaAttention attention;
  BertIntermediate intermediate;
  DebertaOutput output;
};

struct DebertaEncoder : nn::Module<DebertaEncoder> {
  DebertaEncoder(const Place& place, const DebertaPlan& deberta)
      : Module(place, deberta.bert.name.type("Encoder")),
        plan(deberta),
        layer(child("layer"), plan.bert.layers,
              [&](const Place& at, int64_t) { return DebertaLayer(at, plan); }) {
    if (plan.relative) rel_embeddings.emplace(child("rel_embeddings"), 2 * plan.span, plan.bert.hidden);
    if (plan.normed_positions) norm.emplace(child("LayerNorm"), plan.bert.hidden, plan.bert.epsilon);
  }

  // Every hidden state is kept: the model asks for all of them.
  Tensor forward(Tensor hidden, Tensor mask) {
    std::vector<Tensor> all{hidden};
    Relative relative;
    const Tensor wide = nn::unsqueeze(nn::unsqueeze(mask, 1), 2);
    relative.mask = wide * nn::unsqueeze(nn::squeeze(wide, -2), -1);
    if (plan.relative) {
      relative.positions = positions(hidden.size(1));
      relative.embedded = rel_embeddings->weight;
      if (norm) relative.embedded = (*norm)(relative.embedded);
    }
    for (DebertaLayer& one : layer) all.push_back(one(all.back(), relative));
    return all.back();
  }

  // build_relative_position
  Tensor positions(int64_t length) const {
    const Tensor queries = arange(length), keys = arange(length);
    Tensor difference = nn::unsqueeze(queries, 1) - nn::unsqueeze(keys, 0);
    if (plan.buckets > 0) difference = in_buckets(difference);
    return nn::unsqueeze(nn::to(difference, DType::i64), 0);
  }

  // make_log_bucket_position: near ones are told apart, far ones by their logarithm.
  Tensor in_buckets(const Tensor& difference) const {
    const auto middle = static_cast<double>(plan.buckets / 2);
    const Tensor sign = nn::call("sign", difference);
    const Tensor is_near = nn::call("bitwise_and.Tensor", nn::call("lt.Scalar", difference, middle),
                                    nn::call("gt.Scalar", difference, -middle));
    const Tensor far = nn::call("where.ScalarSelf", is_near, middle - 1, nn::call("abs", difference));
    Tensor logarithm = nn::call("log", nn::call("div.Tensor", far, middle));
    logarithm = nn::call("ceil", std::move(logarithm) / std::log(2.0) * (middle - 1)) + middle;
    const Tensor small = nn::call("le.Scalar", far, middle);
    return nn::call("where.self", small, nn::to(difference, DType::f32), logarithm * sign);
  }

  DebertaPlan plan;
  nn::ModuleList<DebertaLayer> layer;
  std::optional<nn::Embedding> rel_embeddings;
  std::optional<nn::LayerNorm> norm;
};

struct DebertaModel : nn::Module<DebertaModel> {
  DebertaModel(const Place& place, const DebertaPlan& plan)
      : Module(place, plan.bert.name.type("Model")),
        embeddings(child("embeddings"), plan),
        encoder(child("encoder"), plan) {}
  Tensor forward(Tensor ids) {
    nn::Argument ones[] = {ids.sizes(), std::nullopt, std::nullopt, kModelDevice};
    const Tensor mask = make("ones", ones);
    const Tensor embedded = embeddings(ids, mask);
    return encoder(embedded, mask);
  }
  DebertaEmbeddings embeddings;
  DebertaEncoder encoder;
};

// LegacyDebertaV2OnlyMLMHead and what it holds.
struct DebertaTransform : nn::Module<DebertaTransform> {
  DebertaTransform(const Place& place, const BertPlan& plan)
      : Module(place,
               "transformers.models.deberta_v2.modeling_deberta_v2.LegacyDebertaV2PredictionHeadTransform"),
        dense(child("dense"), plan.hidden, plan.hidden),
        activation(child("transform_act_fn"), plan.activation, plan.where),
        norm(child("LayerNorm"), plan.hidden, plan.epsilon) {}
  Tensor forward(Tensor hidden) {
    hidden = dense(hidden);
    hidden = activation(hidden);
    return norm(hidden);
  }
  nn::Linear dense;
  Activation activation;
  nn::LayerNorm norm;
};

struct DebertaPredictions : nn::Module<DebertaPredictions> {
  DebertaPredictions(const Place& place, const BertPlan& plan, const Tensor& embedding)
      : Module(place, "transformers.models.deberta_v2.modeling_deberta_v2.LegacyDebertaV2LMPredictionHead"),
        bias(parameter("bias", {plan.vocabulary})),
        transform(child("transform"), plan),
        decoder(tied_decoder(child("decoder"), plan, embedding, bias)) {}
  Tensor forward(Tensor hidden) {
    hidden = transform(hidden);
    return decoder(hidden);
  }
  Tensor bias;
  DebertaTransform transform;
  nn::Linear decoder;
};

struct DebertaHead : nn::Module<DebertaHead> {
  DebertaHead(const Place& place, const BertPlan& plan, const Tensor& embedding)
      : Module(place, "transformers.models.deberta_v2.modeling_deberta_v2.LegacyDebertaV2OnlyMLMHead"),
        predictions(child("predictions"), plan, embedding) {}
  Tensor forward(Tensor hidden) { return predictions(hidden); }
  DebertaPredictions predictions;
};

struct DebertaMasked : nn::Module<DebertaMasked> {
  DebertaMasked(const Place& place, const DebertaPlan& plan)
      : Module(place, plan.bert.name.type("ForMaskedLM")),
        deberta(child("deberta"), plan),
        cls(child("cls"), plan.bert, deberta.embeddings.word_embeddings.weight) {}
  Tensor forward(Tensor ids) {
    const Tensor hidden = deberta(ids);
    return cls(hidden);
  }
  DebertaModel deberta;
  DebertaHead cls;
};

}  // namespace

Program deberta_v2_program(const ConfigModel& model) {
  if (!model.architecture("DebertaV2ForMaskedLM").ends_with("ForMaskedLM"))
    model.reject_architecture("DebertaV2ForMaskedLM");
  const DebertaPlan plan = deberta_plan(model);
  return language_model_program<DebertaMasked>(model, plan.bert.positions, plan);
}

}  // namespace metaprof::configs
