// gpt2 and gpt_neo: learned positions, a norm before each part, a head tied to the embedding. Names and defaults:
// transformers 5.17, models/gpt2, models/gpt_neo.

#include <cmath>

#include "program/config/families.h"

namespace metaprof::configs {
namespace {

struct Gpt2Plan {
  int64_t vocabulary, positions, hidden, inner, layers, heads;
  double epsilon, embedding_dropout, attention_dropout, residual_dropout;
  bool tied, scales, scales_by_layer;
  std::string activation, where;

  int64_t width() const { return hidden / heads; }
};

Gpt2Plan gpt2_plan(const Config& config) {
  Gpt2Plan plan{.vocabulary = config.size({"vocab_size"}, 50257),
                .positions = config.size({"n_positions", "max_position_embeddings"}, 1024),
                .hidden = config.size({"n_embd", "hidden_size"}, 768),
                .inner = 0,
                .layers = config.layers({"n_layer", "num_hidden_layers"}, 12),
                .heads = config.size({"n_head", "num_attention_heads"}, 12),
                .epsilon = config.real({"layer_norm_epsilon"}, 1e-5),
                .embedding_dropout = config.real({"embd_pdrop"}, 0.1),
                .attention_dropout = config.real({"attn_pdrop"}, 0.1),
                .residual_dropout = config.real({"resid_pdrop"}, 0.1),
                .tied = config.flag({"tie_word_embeddings"}, true),
                .scales = config.flag({"scale_attn_weights"}, true),
                .scales_by_layer = config.flag({"scale_attn_by_inverse_layer_idx"}, false),
                .activation = config.text({"activation_function"}, "gelu_new"),
                .where = config.where()};
  plan.inner = config.size({"n_inner"}, 4 * plan.hidden);
  (void)config.divided("n_embd", plan.hidden, "n_head", plan.heads);
  return plan;
}

// A linear layer whose weight is stored [in, out] (pytorch_utils.py).
struct Conv1D : nn::Module<Conv1D> {
  Conv1D(const Place& place, int64_t in, int64_t out)
      : Module(place, "transformers.pytorch_utils.Conv1D"),
        weight(parameter("weight", {in, out})),
        bias(parameter("bias", {out})) {}

  Tensor forward(Tensor x) {
    Sizes sizes = x.sizes();
    sizes.back() = weight.size(1);
    Tensor rows = nn::view(x, {-1, x.size(-1)});
    x = nn::call("addmm", bias, std::move(rows), weight);
    return nn::view(std::move(x), sizes);
  }

  Tensor weight, bias;
};

struct Gpt2Attention : nn::Module<Gpt2Attention> {
  Gpt2Attention(const Place& place, const Gpt2Plan& plan, int64_t index)
      : Module(place, "transformers.models.gpt2.modeling_gpt2.GPT2Attention"),
        hidden_size(plan.hidden),
        width(plan.width()),
        scale(plan.scales ? 1 / std::sqrt(static_cast<double>(plan.width())) : 1),
        c_attn(child("c_attn"), plan.hidden, 3 * plan.hidden),
        c_proj(child("c_proj"), plan.hidden, plan.hidden),
        attn_dropout(child("attn_dropout"), plan.attention_dropout),
        resid_dropout(child("resid_dropout"), plan.residual_dropout) {
    if (plan.scales_by_layer) scale /= static_cast<double>(index + 1);
  }

  Tensor forward(Tensor hidden) {
    std::vector<Tensor> parts = nn::split(c_attn(hidden), hidden_size, 2);
    Tensor query = std::move(parts[0]), key = std::move(parts[1]), value = std::move(parts[2]);
    key = split_heads(std::move(key), width);
    value = split_heads(std::move(value), width);
    query = split_heads(std::move(query), width);
    Tensor output = attend(query, key, value,
                           {.mask = {}, .dropout = attn_dropout.probability, .causal = true, .scale = scale});
    output = nn::reshape(std::move(output), {hidden.size(0), hidden.size(1), -1});
    output = c_proj(output);
    return resid_dropout(output);
  }

  int64_t hidden_size, width;
  double scale;
  Conv1D c_attn, c_proj;
  nn::Dropout attn_dropout, resid_dropout;
};

// Projection: gpt2's Conv1D, or a linear layer.
template <class Projection>
struct PlainMlp : nn::Module<PlainMlp<Projection>> {
  PlainMlp(const Place& place, const char* type, const Gpt2Plan& plan)
      : nn::Module<PlainMlp>(place, type),
        c_fc(this->child("c_fc"), plan.hidden, plan.inner),
        c_proj(this->child("c_proj"), plan.inner, plan.hidden),
        act(this->child("act"), plan.activation, plan.where),
        dropout(this->child("dropout"), plan.residual_dropout) {}

  Tensor forward(Tensor hidden) {
    hidden = c_fc(hidden);
    hidden = act(hidden);
    hidden = c_proj(hidden);
    return dropout(hidden);
  }

  Projection c_fc, c_proj;
  Activation act;
  nn::Dropout dropout;
};

struct Gpt2Block : nn::Module<Gpt2Block> {
  Gpt2Block(const Place& place, const Gpt2Plan& plan, int64_t index)
      : Module(place, "transformers.models.gpt2.modeling_gpt2.GPT2Block"),
        ln_1(child("ln_1"), plan.hidden, plan.epsilon),
        attn(child("attn"), plan, index),
        ln_2(child("ln_2"), plan.hidden, plan.epsilon),
        mlp(child("mlp"), "transformers.models.gpt2.modeling_gpt2.GPT2MLP", plan) {}

  Tensor forward(Tensor hidden) {
    Tensor residual = hidden;
    hidden = ln_1(hidden);
    const Tensor attention = attn(hidden);
    hidden = attention + residual;
    residual = hidden;
    hidden = ln_2(hidden);
    const Tensor fed = mlp(hidden);
    return residual + fed;
  }

  nn::LayerNorm ln_1;
  Gpt2Attention attn;
  nn::LayerNorm ln_2;
  PlainMlp<Conv1D> mlp;
};

struct Gpt2Model : nn::Module<Gpt2Model> {
  Gpt2Model(const Place& place, const Gpt2Plan& plan)
      : Module(place, "transformers.models.gpt2.modeling_gpt2.GPT2Model"),
        wte(child("wte"), plan.vocabulary, plan.hidden),
        wpe(child("wpe"), plan.positions, plan.hidden),
        drop(child("drop"), plan.embedding_dropout),
        h(child("h"), plan.layers,
          [&](const Place& at, int64_t index) { return Gpt2Block(at, plan, index); }),
        ln_f(child("ln_f"), plan.hidden, plan.epsilon) {}

  Tensor forward(Tensor ids) {
    const Sizes tokens = ids.sizes();
    ids = nn::view(std::move(ids), {-1, tokens[1]});
    const Tensor embedded = wte(ids);
    const Tensor positions = positions_of(*this, tokens[1]);
    const Tensor places = wpe(positions);
    Tensor hidden = embedded + places;
    hidden = drop(hidden);
    for (Gpt2Block& block : h) hidden = block(hidden);
    hidden = ln_f(hidden);
    return nn::view(std::move(hidden), {-1, tokens[1], embedded.size(2)});
  }

  nn::Embedding wte, wpe;
  nn::Dropout drop;
  nn::ModuleList<Gpt2Block> h;
  nn::LayerNorm ln_f;
};

// The model, and a head that may share the embedding's weight.
template <class Trunk>
struct Gpt2WithHead : nn::Module<Gpt2WithHead<Trunk>> {
  Gpt2WithHead(const Place& place, const Gpt2Plan& plan, const char* type)
      : nn::Module<Gpt2WithHead>(place, type),
        transformer(this->child("transformer"), plan),
        lm_head(plan.tied ? nn::Linear(this->child("lm_head"), transformer.wte.weight, false)
                          : nn::Linear(this->child("lm_head"), plan.hidden, plan.vocabulary, false)) {}

  Tensor forward(Tensor ids) {
    const Tensor hidden = transformer(ids);
    return lm_head(nn::slice(hidden, 1, 0, nn::kEnd));
  }

  Trunk transformer;
  nn::Linear lm_head;
};

Gpt2Plan gpt_neo_plan(const Config& config) {
  Gpt2Plan plan{.vocabulary = config.size({"vocab_size"}, 50257),
                .positions = config.size({"max_position_embeddings"}, 2048),
                .hidden = config.size({"hidden_size"}, 2048),
                .inner = 0,
                .layers = config.layers({"num_layers", "num_hidden_layers"}, 24),
                .heads = config.size({"num_heads", "num_attention_heads"}, 16),
                .epsilon = config.real({"layer_norm_epsilon"}, 1e-5),
                .embedding_dropout = config.real({"embed_dropout"}, 0),
                .attention_dropout = config.real({"attention_dropout"}, 0),
                .residual_dropout = config.real({"resid_dropout"}, 0),
                .tied = config.flag({"tie_word_embeddings"}, true),
                .scales = false,
                .scales_by_layer = false,
                .activation = config.text({"activation_function"}, "gelu_new"),
                .where = config.where()};
  plan.inner = config.size({"intermediate_size"}, 4 * plan.hidden);
  (void)config.divided("hidden_size", plan.hidden, "num_heads", plan.heads);
  return plan;
}

struct GptNeoSelfAttention : nn::Module<GptNeoSelfAttention> {
  GptNeoSelfAttention(const Place& place, const Gpt2Plan& plan)
      : Module(place, "transformers.models.gpt_neo.modeling_gpt_neo.GPTNeoSelfAttention"),
        heads(plan.heads),
        bias(buffer("bias", {1, 1, plan.positions, plan.positions}, DType::b8, false)),
        attn_dropout(child("attn_dropout"), plan.attention_dropout),
        resid_dropout(child("resid_dropout"), plan.residual_dropout),
        k_proj(child("k_proj"), plan.hidden, plan.hidden, false),
        v_proj(child("v_proj"), plan.hidden, plan.hidden, false),
        q_proj(child("q_proj"), plan.hidden, plan.hidden, false),
        out_proj(child("out_proj"), plan.hidden, plan.hidden) {}

  Tensor forward(Tensor hidden) {
    Tensor query = q_proj(hidden);
    Tensor key = k_proj(hidden);
    Tensor value = v_proj(hidden);
    query = of_heads(std::move(query));
    key = of_heads(std::move(key));
    value = of_heads(std::move(value));
    Tensor output = attention(query, key, value);
    output = nn::contiguous(nn::permute(std::move(output), {0, 2, 1, 3}));
    output = nn::view(std::move(output), hidden.sizes());
    output = out_proj(output);
    return resid_dropout(output);
  }

  Tensor of_heads(Tensor x) const {
    const Sizes sizes{x.size(0), x.size(1), heads, x.size(2) / heads};
    return nn::permute(nn::view(std::move(x), sizes), {0, 2, 1, 3});
  }

  // Eager, in 32 bits; a window of nearer keys is only another mask.
  Tensor attention(Tensor query, Tensor key, const Tensor& value) {
    query = nn::to(std::move(query), DType::f32);
    key = nn::to(std::move(key), DType::f32);
    Tensor weights = nn::matmul(query, nn::transpose(key, -1, -2));
    Tensor causal = nn::slice(nn::slice(bias, 2, 0, query.size(-2)), 3, 0, key.size(-2));
    nn::Argument given[] = {Sizes{}, 0.0, weights.dtype(), std::nullopt, kModelDevice};
    const Tensor least = make("full", given);
    weights = nn::call("where.self", causal, weights, least);
    weights = nn::softmax(weights, -1);
    weights = nn::to(weights, value.dtype());
    weights = attn_dropout(weights);
    return nn::matmul(weights, value);
  }

  int64_t heads;
  Tensor bias;
  nn::Dropout attn_dropout, resid_dropout;
  nn::Linear k_proj, v_proj, q_proj, out_proj;
};

struct GptNeoAttention : nn::Module<GptNeoAttention> {
  GptNeoAttention(const Place& place, const Gpt2Plan& plan)
      : Module(place, "transformers.models.gpt_neo.modeling_gpt_neo.GPTNeoAttention"),
        attention(child("attention"), plan) {}
  Tensor forward(Tensor hidden) { return attention(hidden); }
  GptNeoSelfAttention attention;
};

struct GptNeoBlock : nn::Module<GptNeoBlock> {
  GptNeoBlock(const Place& place, const Gpt2Plan& plan)
      : Module(place, "transformers.models.gpt_neo.modeling_gpt_neo.GPTNeoBlock"),
        ln_1(child("ln_1"), plan.hidden, plan.epsilon),
        attn(child("attn"), plan),
        ln_2(child("ln_2"), plan.hidden, plan.epsilon),
        mlp(child("mlp"), "transformers.models.gpt_neo.modeling_gpt_neo.GPTNeoMLP", plan) {}

  Tensor forward(Tensor hidden) {
    Tensor residual = hidden;
    hidden = ln_1(hidden);
    const Tensor attention = attn(hidden);
    hidden = attention + residual;
    residual = hidden;
    hidden = ln_2(hidden);
    const Tensor fed = mlp(hidden);
    return residual + fed;
  }

  nn::LayerNorm ln_1;
  GptNeoAttention attn;
  nn::LayerNorm ln_2;
  PlainMlp<nn::Linear> mlp;
};

struct GptNeoModel : nn::Module<GptNeoModel> {
  GptNeoModel(const Place& place, const Gpt2Plan& plan)
      : Module(place, "transformers.models.gpt_neo.modeling_gpt_neo.GPTNeoModel"),
        wte(child("wte"), plan.vocabulary, plan.hidden),
        wpe(child("wpe"), plan.positions, plan.hidden),
        drop(child("drop"), plan.embedding_dropout),
        h(child("h"), plan.layers, [&](const Place& at, int64_t) { return GptNeoBlock(at, plan); }),
        ln_f(child("ln_f"), plan.hidden, plan.epsilon) {}

  Tensor forward(Tensor ids) {
    const Tensor embedded = wte(ids);
    const Tensor positions = positions_of(*this, ids.size(1));
    const Tensor places = wpe(positions);
    Tensor hidden = embedded + places;
    hidden = drop(hidden);
    for (GptNeoBlock& block : h) hidden = block(hidden);
    hidden = ln_f(hidden);
    return nn::view(std::move(hidden), {-1, ids.size(1), embedded.size(2)});
  }

  nn::Embedding wte, wpe;
  nn::Dropout drop;
  nn::ModuleList<GptNeoBlock> h;
  nn::LayerNorm ln_f;
};

}  // namespace

Program gpt2_program(const ConfigModel& model) {
  const Gpt2Plan plan = gpt2_plan(model.config);
  return causal_language_model_program<Gpt2WithHead<Gpt2Model>>(
      model, plan.positions, plan, "transformers.models.gpt2.modeling_gpt2.GPT2LMHeadModel");
}

Program gpt_neo_program(const ConfigModel& model) {
  const Gpt2Plan plan = gpt_neo_plan(model.config);
  return causal_language_model_program<Gpt2WithHead<GptNeoModel>>(
      model, plan.positions, plan, "transformers.models.gpt_neo.modeling_gpt_neo.GPTNeoForCausalLM");
}

}  // namespace metaprof::configs
