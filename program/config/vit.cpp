// vit and dinov2: images as rows of patches. Names and defaults: transformers 5.17, models/vit, models/dinov2.

#include <cmath>
#include <optional>

#include "program/config/families.h"

namespace metaprof::configs {
namespace {

struct VitPlan {
  FamilyName name;
  int64_t hidden, inner, layers, heads, image, patch, channels, labels;
  double epsilon, dropout, attention_dropout;
  bool bias;
  std::string activation, where;

  int64_t width() const { return hidden / heads; }
  int64_t patches() const { return (image / patch) * (image / patch); }
  Sizes pixels(int64_t batch) const { return {batch, channels, image, image}; }
};

VitPlan vit_plan(const ConfigModel& model, FamilyName name) {
  const Config& config = model.config;
  VitPlan plan{.name = std::move(name),
               .hidden = config.size({"hidden_size"}, 768),
               .inner = config.size({"intermediate_size"}, 3072),
               .layers = config.layers({"num_hidden_layers"}, 12),
               .heads = config.size({"num_attention_heads"}, 12),
               .image = config.size({"image_size"}, 224),
               .patch = config.size({"patch_size"}, 16),
               .channels = config.size({"num_channels"}, 3),
               .labels = model.labels(),
               .epsilon = config.real({"layer_norm_eps"}, 1e-12),
               .dropout = config.real({"hidden_dropout_prob"}, 0),
               .attention_dropout = config.real({"attention_probs_dropout_prob"}, 0),
               .bias = config.flag({"qkv_bias"}, true),
               .activation = config.text({"hidden_act"}, "gelu"),
               .where = config.where()};
  (void)config.divided("hidden_size", plan.hidden, "num_attention_heads", plan.heads);
  if (plan.patch > plan.image) config.reject("patch_size", "is larger than image_size");
  return plan;
}

struct PatchEmbeddings : nn::Module<PatchEmbeddings> {
  PatchEmbeddings(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("PatchEmbeddings")),
        projection(child("projection"), plan.channels, plan.hidden, plan.patch, plan.patch) {}
  Tensor forward(Tensor pixels) { return nn::transpose(nn::flatten(projection(pixels), 2), 1, 2); }
  nn::Conv2d projection;
};

struct VitEmbeddings : nn::Module<VitEmbeddings> {
  VitEmbeddings(const Place& place, const VitPlan& plan, bool has_mask_token)
      : Module(place, plan.name.type("Embeddings")), cls_token(parameter("cls_token", {1, 1, plan.hidden})) {
    if (has_mask_token) (void)parameter("mask_token", {1, plan.hidden});
    position_embeddings = parameter("position_embeddings", {1, plan.patches() + 1, plan.hidden});
    patch_embeddings.emplace(child("patch_embeddings"), plan);
    dropout.emplace(child("dropout"), plan.dropout);
  }

  Tensor forward(Tensor pixels) {
    Tensor embedded = (*patch_embeddings)(pixels);
    const Tensor classes = nn::expand(cls_token, {pixels.size(0), -1, -1});
    embedded = nn::cat({classes, embedded}, 1);
    embedded = embedded + position_embeddings;
    return (*dropout)(embedded);
  }

  Tensor cls_token, position_embeddings;
  std::optional<PatchEmbeddings> patch_embeddings;
  std::optional<nn::Dropout> dropout;
};

struct VitAttention : nn::Module<VitAttention> {
  VitAttention(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("Attention")),
        width(plan.width()),
        dropout(plan.attention_dropout),
        q_proj(child("q_proj"), plan.hidden, plan.hidden, plan.bias),
        k_proj(child("k_proj"), plan.hidden, plan.hidden, plan.bias),
        v_proj(child("v_proj"), plan.hidden, plan.hidden, plan.bias),
        o_proj(child("o_proj"), plan.hidden, plan.hidden) {}

  Tensor forward(Tensor hidden) {
    const Tensor query = split_heads(q_proj(hidden), width);
    const Tensor key = split_heads(k_proj(hidden), width);
    const Tensor value = split_heads(v_proj(hidden), width);
    Tensor output =
        attend(query, key, value,
               {.mask = {}, .dropout = dropout, .scale = 1 / std::sqrt(static_cast<double>(width))});
    output = nn::reshape(std::move(output), {hidden.size(0), hidden.size(1), -1});
    return o_proj(output);
  }

  int64_t width;
  double dropout;
  nn::Linear q_proj, k_proj, v_proj, o_proj;
};

struct VitMlp : nn::Module<VitMlp> {
  VitMlp(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("MLP")),
        activation_fn(child(plan.name.prefix == "ViT" ? "activation_fn" : "activation"), plan.activation,
                      plan.where),
        fc1(child("fc1"), plan.hidden, plan.inner),
        fc2(child("fc2"), plan.inner, plan.hidden) {}

  Tensor forward(Tensor hidden) {
    hidden = fc1(hidden);
    hidden = activation_fn(hidden);
    return fc2(hidden);
  }

  Activation activation_fn;
  nn::Linear fc1, fc2;
};

struct VitLayer : nn::Module<VitLayer> {
  VitLayer(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("Layer")),
        attention(child("attention"), plan),
        layernorm_before(child("layernorm_before"), plan.hidden, plan.epsilon),
        layernorm_after(child("layernorm_after"), plan.hidden, plan.epsilon),
        mlp(child("mlp"), plan),
        dropout(child("dropout"), plan.dropout) {}

  Tensor forward(Tensor hidden) {
    Tensor residual = hidden;
    hidden = layernorm_before(hidden);
    hidden = attention(hidden);
    hidden = dropout(hidden);
    hidden = hidden + residual;
    residual = hidden;
    hidden = layernorm_after(hidden);
    hidden = mlp(hidden);
    hidden = dropout(hidden);
    return hidden + residual;
  }

  VitAttention attention;
  nn::LayerNorm layernorm_before, layernorm_after;
  VitMlp mlp;
  nn::Dropout dropout;
};

struct VitPooler : nn::Module<VitPooler> {
  VitPooler(const Place& place, const VitPlan& plan, int64_t out, const std::string& function)
      : Module(place, plan.name.type("Pooler")),
        dense(child("dense"), plan.hidden, out),
        activation(child("activation"), function, plan.where) {}

  Tensor forward(Tensor hidden) {
    const Tensor first = nn::select(hidden, 1, 0);
    const Tensor pooled = dense(first);
    return activation(pooled);
  }

  nn::Linear dense;
  Activation activation;
};

struct VitModel : nn::Module<VitModel> {
  VitModel(const Place& place, const VitPlan& plan, const Config* pooled)
      : Module(place, plan.name.type("Model")),
        embeddings(child("embeddings"), plan, false),
        layers(child("layers"), plan.layers, [&](const Place& at, int64_t) { return VitLayer(at, plan); }),
        layernorm(child("layernorm"), plan.hidden, plan.epsilon) {
    if (pooled)
      pooler.emplace(child("pooler"), plan, pooled->size({"pooler_output_size"}, plan.hidden),
                     pooled->text({"pooler_act"}, "tanh"));
  }

  std::vector<Tensor> forward(Tensor pixels) {
    const Tensor embedded = embeddings(pixels);
    Tensor hidden = embedded;
    for (VitLayer& layer : layers) hidden = layer(hidden);
    const Tensor last = layernorm(hidden);
    if (!pooler) return {last};
    const Tensor pooled = (*pooler)(last);
    return {last, pooled};
  }

  VitEmbeddings embeddings;
  nn::ModuleList<VitLayer> layers;
  nn::LayerNorm layernorm;
  std::optional<VitPooler> pooler;
};

struct VitClassifier : nn::Module<VitClassifier> {
  VitClassifier(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("ForImageClassification")),
        vit(child("vit"), plan, nullptr),
        classifier(child("classifier"), plan.hidden, plan.labels) {}

  Tensor forward(Tensor pixels) {
    const Tensor hidden = vit(pixels).front();
    const Tensor pooled = nn::select(hidden, 1, 0);
    return classifier(pooled);
  }

  VitModel vit;
  nn::Linear classifier;
};

// ---- dinov2

struct DinoSelfAttention : nn::Module<DinoSelfAttention> {
  DinoSelfAttention(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("SelfAttention")),
        width(plan.width()),
        dropout(plan.attention_dropout),
        query(child("query"), plan.hidden, plan.hidden, plan.bias),
        key(child("key"), plan.hidden, plan.hidden, plan.bias),
        value(child("value"), plan.hidden, plan.hidden, plan.bias) {}

  Tensor forward(Tensor hidden) {
    const Tensor keys = split_heads(key(hidden), width);
    const Tensor values = split_heads(value(hidden), width);
    const Tensor queries = split_heads(query(hidden), width);
    Tensor output =
        attend(queries, keys, values,
               {.mask = {}, .dropout = dropout, .scale = 1 / std::sqrt(static_cast<double>(width))});
    return nn::reshape(std::move(output), hidden.sizes());
  }

  int64_t width;
  double dropout;
  nn::Linear query, key, value;
};

struct DinoSelfOutput : nn::Module<DinoSelfOutput> {
  DinoSelfOutput(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("SelfOutput")),
        dense(child("dense"), plan.hidden, plan.hidden),
        dropout(child("dropout"), plan.dropout) {}
  Tensor forward(Tensor hidden) {
    hidden = dense(hidden);
    return dropout(hidden);
  }
  nn::Linear dense;
  nn::Dropout dropout;
};

struct DinoAttention : nn::Module<DinoAttention> {
  DinoAttention(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("Attention")),
        attention(child("attention"), plan),
        output(child("output"), plan) {}
  Tensor forward(Tensor hidden) {
    const Tensor attended = attention(hidden);
    return output(attended);
  }
  DinoSelfAttention attention;
  DinoSelfOutput output;
};

struct LayerScale : nn::Module<LayerScale> {
  LayerScale(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("LayerScale")), lambda1(parameter("lambda1", {plan.hidden})) {}
  Tensor forward(Tensor hidden) { return hidden * lambda1; }
  Tensor lambda1;
};

struct DinoLayer : nn::Module<DinoLayer> {
  DinoLayer(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("Layer")),
        norm1(child("norm1"), plan.hidden, plan.epsilon),
        attention(child("attention"), plan),
        layer_scale1(child("layer_scale1"), plan),
        norm2(child("norm2"), plan.hidden, plan.epsilon),
        mlp(child("mlp"), plan),
        layer_scale2(child("layer_scale2"), plan) {}

  Tensor forward(Tensor hidden) {
    const Tensor normed = norm1(hidden);
    Tensor attended = attention(normed);
    attended = layer_scale1(attended);
    hidden = attended + hidden;
    Tensor output = norm2(hidden);
    output = mlp(output);
    output = layer_scale2(output);
    return output + hidden;
  }

  nn::LayerNorm norm1;
  DinoAttention attention;
  LayerScale layer_scale1;
  nn::LayerNorm norm2;
  VitMlp mlp;
  LayerScale layer_scale2;
};

struct DinoEncoder : nn::Module<DinoEncoder> {
  DinoEncoder(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("Encoder")),
        layer(child("layer"), plan.layers, [&](const Place& at, int64_t) { return DinoLayer(at, plan); }) {}
  Tensor forward(Tensor hidden) {
    for (DinoLayer& each : layer) hidden = each(hidden);
    return hidden;
  }
  nn::ModuleList<DinoLayer> layer;
};

// The last hidden state, and its first token.
struct DinoModel : nn::Module<DinoModel> {
  DinoModel(const Place& place, const VitPlan& plan)
      : Module(place, plan.name.type("Model")),
        embeddings(child("embeddings"), plan, true),
        encoder(child("encoder"), plan),
        layernorm(child("layernorm"), plan.hidden, plan.epsilon) {}

  std::vector<Tensor> forward(Tensor pixels) {
    const Tensor embedded = embeddings(pixels);
    const Tensor hidden = encoder(embedded);
    const Tensor last = layernorm(hidden);
    const Tensor pooled = nn::select(last, 1, 0);
    return {last, pooled};
  }

  VitEmbeddings embeddings;
  DinoEncoder encoder;
  nn::LayerNorm layernorm;
};

}  // namespace

Program vit_program(const ConfigModel& model) {
  const VitPlan plan = vit_plan(model, {"vit", "ViT"});
  const std::string architecture = model.architecture("ViTForImageClassification");
  ModelRecorder recorder(model);
  const Tensor pixels = recorder.input("pixel_values", DType::f32, plan.pixels(model.batch()));
  if (architecture.ends_with("ForImageClassification")) {
    const Tensor labels = recorder.input("labels", DType::i64, {pixels.size(0)});
    VitClassifier made(recorder.root(), plan);
    const Tensor logits = made(pixels);
    return recorder.finish(nn::cross_entropy(logits, labels));
  }
  if (!architecture.ends_with("ViTModel"))
    model.reject_architecture("ViTForImageClassification and ViTModel");
  VitModel made(recorder.root(), plan, &model.config);
  const std::vector<Tensor> outputs = made(pixels);
  return recorder.finish(sum_of_means(outputs));
}

Program dinov2_program(const ConfigModel& model) {
  const Config& config = model.config;
  VitPlan plan = vit_plan(model, {"dinov2", "Dinov2"});
  plan.patch = config.size({"patch_size"}, 14);
  plan.epsilon = config.real({"layer_norm_eps"}, 1e-6);
  plan.inner = plan.hidden * config.size({"mlp_ratio"}, 4);
  if (config.flag({"use_swiglu_ffn"}, false))
    config.reject("use_swiglu_ffn", "gated feed-forward parts are not built");
  if (config.real({"drop_path_rate"}, 0) > 0)
    config.reject("drop_path_rate", "layers that are left out by chance are not built");
  if (!model.architecture("Dinov2Model").ends_with("Dinov2Model")) model.reject_architecture("Dinov2Model");
  ModelRecorder recorder(model);
  const Tensor pixels = recorder.input("pixel_values", DType::f32, plan.pixels(model.batch()));
  DinoModel made(recorder.root(), plan);
  const std::vector<Tensor> outputs = made(pixels);
  return recorder.finish(sum_of_means(outputs));
}

}  // namespace metaprof::configs
