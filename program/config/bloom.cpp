// bloom: no positions but a bias on the scores, eager attention. Names and defaults: transformers 5.17,
// models/bloom.

#include <cmath>

#include "program/config/families.h"
#include "program/config/layers/masks.h"

namespace metaprof::configs {
namespace {

struct BloomPlan {
  int64_t vocabulary, hidden, layers, heads;
  double epsilon, hidden_dropout, attention_dropout;
  bool residual_after_norm, tied;
};

BloomPlan bloom_plan(const Config& config) {
  BloomPlan plan{.vocabulary = config.size({"vocab_size"}, 250880),
                 .hidden = config.size({"n_embed", "hidden_size"}, 64),
                 .layers = config.layers({"n_layer", "num_hidden_layers"}, 2),
                 .heads = config.size({"n_head", "num_attention_heads"}, 8),
                 .epsilon = config.real({"layer_norm_epsilon"}, 1e-5),
                 .hidden_dropout = config.real({"hidden_dropout"}, 0),
                 .attention_dropout = config.real({"attention_dropout"}, 0),
                 .residual_after_norm = config.flag({"apply_residual_connection_post_layernorm"}, false),
                 .tied = config.flag({"tie_word_embeddings"}, true)};
  (void)config.divided("hidden_size", plan.hidden, "n_head", plan.heads);
  if (config.flag({"slow_but_exact"}, false))
    config.reject("slow_but_exact", "the slower products of several pieces are not built");
  return plan;
}

std::string bloom_type(const char* name) {
  return std::string("transformers.models.bloom.modeling_bloom.Bloom") + name;
}

struct BloomAttention : nn::Module<BloomAttention> {
  BloomAttention(const Place& place, const BloomPlan& plan)
      : Module(place, bloom_type("Attention")),
        heads(plan.heads),
        width(plan.hidden / plan.heads),
        dropout(plan.hidden_dropout),
        query_key_value(child("query_key_value"), plan.hidden, 3 * plan.hidden),
        dense(child("dense"), plan.hidden, plan.hidden),
        attention_dropout(child("attention_dropout"), plan.attention_dropout) {}

  Tensor forward(Tensor hidden, Tensor residual, Tensor bias, Tensor mask) {
    const int64_t batch = hidden.size(0), length = hidden.size(1);
    const Tensor fused = query_key_value(hidden);
    const Tensor parts = nn::view(fused, {batch, length, heads, 3, width});
    Tensor query = nn::transpose(nn::select(parts, 3, 0), 1, 2);
    Tensor key = nn::transpose(nn::select(parts, 3, 1), 1, 2);
    Tensor value = nn::transpose(nn::select(parts, 3, 2), 1, 2);
    const Sizes rows{batch * heads, -1, width};
    query = nn::reshape(query, rows);
    key = nn::transpose(nn::reshape(key, rows), -1, -2);
    value = nn::reshape(value, rows);
    const Tensor scores =
        nn::call("baddbmm", bias, query, key, 1.0, 1 / std::sqrt(static_cast<double>(width)));
    Tensor weights = nn::view(scores, {batch, heads, length, -1});
    weights = weights + mask;
    Tensor probabilities = nn::to(nn::softmax(weights, -1, DType::f32), query.dtype());
    probabilities = attention_dropout(probabilities);
    const Tensor flat = nn::view(probabilities, {batch * heads, length, -1});
    Tensor context = nn::call("bmm", flat, value);
    context = nn::permute(nn::view(context, {batch, heads, length, width}), {0, 2, 1, 3});
    context = nn::reshape(context, {batch, length, heads * width});
    Tensor output = dense(context);
    output = nn::dropout(std::move(output), dropout);
    return residual + output;
  }

  int64_t heads, width;
  double dropout;
  nn::Linear query_key_value, dense;
  nn::Dropout attention_dropout;
};

// An autograd function of its own, which keeps its argument alone. The framework's gelu keeps the same, and its
// backward has fewer temporaries.
struct BloomGelu : nn::Module<BloomGelu> {
  explicit BloomGelu(const Place& place) : Module(place, bloom_type("Gelu")) {}
  Tensor forward(Tensor x) { return nn::gelu(std::move(x), "tanh"); }
};

struct BloomMlp : nn::Module<BloomMlp> {
  BloomMlp(const Place& place, const BloomPlan& plan)
      : Module(place, bloom_type("MLP")),
        dropout(plan.hidden_dropout),
        dense_h_to_4h(child("dense_h_to_4h"), plan.hidden, 4 * plan.hidden),
        gelu_impl(child("gelu_impl")),
        dense_4h_to_h(child("dense_4h_to_h"), 4 * plan.hidden, plan.hidden) {}

  Tensor forward(Tensor hidden, Tensor residual) {
    hidden = gelu_impl(dense_h_to_4h(hidden));
    Tensor output = dense_4h_to_h(hidden);
    output = nn::dropout(std::move(output), dropout);
    return residual + output;
  }

  double dropout;
  nn::Linear dense_h_to_4h;
  BloomGelu gelu_impl;
  nn::Linear dense_4h_to_h;
};

struct BloomBlock : nn::Module<BloomBlock> {
  BloomBlock(const Place& place, const BloomPlan& plan)
      : Module(place, bloom_type("Block")),
        residual_after_norm(plan.residual_after_norm),
        input_layernorm(child("input_layernorm"), plan.hidden, plan.epsilon),
        self_attention(child("self_attention"), plan),
        post_attention_layernorm(child("post_attention_layernorm"), plan.hidden, plan.epsilon),
        mlp(child("mlp"), plan) {}

  Tensor forward(Tensor hidden, Tensor bias, Tensor mask) {
    Tensor normed = input_layernorm(hidden);
    Tensor residual = residual_after_norm ? normed : hidden;
    const Tensor attended = self_attention(normed, residual, bias, mask);
    normed = post_attention_layernorm(attended);
    residual = residual_after_norm ? normed : attended;
    return mlp(normed, residual);
  }

  bool residual_after_norm;
  nn::LayerNorm input_layernorm;
  BloomAttention self_attention;
  nn::LayerNorm post_attention_layernorm;
  BloomMlp mlp;
};

struct BloomModel : nn::Module<BloomModel> {
  BloomModel(const Place& place, const BloomPlan& plan)
      : Module(place, bloom_type("Model")),
        heads(plan.heads),
        word_embeddings(child("word_embeddings"), plan.vocabulary, plan.hidden),
        word_embeddings_layernorm(child("word_embeddings_layernorm"), plan.hidden, plan.epsilon),
        h(child("h"), plan.layers, [&](const Place& at, int64_t) { return BloomBlock(at, plan); }),
        ln_f(child("ln_f"), plan.hidden, plan.epsilon) {}

  Tensor forward(Tensor ids) {
    const Tensor embedded = word_embeddings(ids);
    Tensor hidden = word_embeddings_layernorm(embedded);
    nn::Argument ones[] = {ids.sizes(), std::nullopt, std::nullopt, kModelDevice};
    const Tensor tokens = make("ones", ones);
    const Tensor bias = alibi(tokens, hidden.dtype());
    const Tensor mask = additive_causal_mask(*this, hidden);
    for (BloomBlock& block : h) hidden = block(hidden, bias, mask);
    return ln_f(hidden);
  }

  // build_alibi_tensor: a slope per head times the position, [batch · heads, 1, positions].
  Tensor alibi(const Tensor& tokens, nn::DTypeOf dtype) {
    nn::Argument numbers[] = {Sizes{heads}, DType::f32, std::nullopt, kModelDevice};
    const Tensor slopes = make("empty.memory_format", numbers);
    Tensor positions = nn::call("sub.Tensor", nn::call("cumsum", tokens, -1), 1) * tokens;
    positions = nn::unsqueeze(positions, 1);
    const Tensor bias = nn::unsqueeze(slopes, 1) * positions;
    return nn::to(nn::reshape(bias, {tokens.size(0) * heads, 1, tokens.size(1)}), dtype);
  }

  int64_t heads;
  nn::Embedding word_embeddings;
  nn::LayerNorm word_embeddings_layernorm;
  nn::ModuleList<BloomBlock> h;
  nn::LayerNorm ln_f;
};

struct BloomLanguageModel : nn::Module<BloomLanguageModel> {
  BloomLanguageModel(const Place& place, const BloomPlan& plan)
      : Module(place, bloom_type("ForCausalLM")),
        transformer(child("transformer"), plan),
        lm_head(plan.tied ? nn::Linear(child("lm_head"), transformer.word_embeddings.weight, false)
                          : nn::Linear(child("lm_head"), plan.hidden, plan.vocabulary, false)) {}

  Tensor forward(Tensor ids) {
    const Tensor hidden = transformer(ids);
    return lm_head(nn::slice(hidden, 1, 0, nn::kEnd));
  }

  BloomModel transformer;
  nn::Linear lm_head;
};

}  // namespace

Program bloom_program(const ConfigModel& model) {
  const BloomPlan plan = bloom_plan(model.config);
  return causal_language_model_program<BloomLanguageModel>(model, INT64_MAX, plan);
}

}  // namespace metaprof::configs
