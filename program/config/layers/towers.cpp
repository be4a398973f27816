#include "program/config/layers/towers.h"

#include <cmath>
#include <optional>

namespace metaprof::configs {
namespace {

struct TowerAttention : nn::Module<TowerAttention> {
  TowerAttention(const Place& place, const TowerPlan& plan)
      : Module(place, plan.name.type("Attention")),
        width(plan.width()),
        dropout(plan.dropout),
        causal(plan.causal),
        k_proj(child("k_proj"), plan.hidden, plan.hidden),
        v_proj(child("v_proj"), plan.hidden, plan.hidden),
        q_proj(child("q_proj"), plan.hidden, plan.hidden),
        out_proj(child("out_proj"), plan.hidden, plan.hidden) {}

  Tensor forward(Tensor hidden) {
    Tensor query = q_proj(hidden);
    Tensor key = k_proj(hidden);
    Tensor value = v_proj(hidden);
    query = split_heads(std::move(query), width);
    key = split_heads(std::move(key), width);
    value = split_heads(std::move(value), width);
    Tensor output = attend(query, key, value,
                           {.mask = {},
                            .dropout = dropout,
                            .causal = causal,
                            .scale = 1 / std::sqrt(static_cast<double>(width))});
    output = nn::reshape(std::move(output), {hidden.size(0), hidden.size(1), -1});
    return out_proj(output);
  }

  int64_t width;
  double dropout;
  bool causal;
  nn::Linear k_proj, v_proj, q_proj, out_proj;
};

struct TowerMlp : nn::Module<TowerMlp> {
  TowerMlp(const Place& place, const TowerPlan& plan)
      : Module(place, plan.name.type("MLP")),
        activation_fn(child("activation_fn"), plan.activation, plan.where),
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

struct TowerLayer : nn::Module<TowerLayer> {
  TowerLayer(const Place& place, const TowerPlan& plan) : Module(place, plan.name.type("EncoderLayer")) {
    const bool attention_first = plan.name.module == "clip";  // only the order of registration
    if (attention_first) self_attn.emplace(child("self_attn"), plan);
    layer_norm1.emplace(child("layer_norm1"), plan.hidden, plan.epsilon);
    if (!attention_first) self_attn.emplace(child("self_attn"), plan);
    if (attention_first) mlp.emplace(child("mlp"), plan);
    layer_norm2.emplace(child("layer_norm2"), plan.hidden, plan.epsilon);
    if (!attention_first) mlp.emplace(child("mlp"), plan);
  }

  Tensor forward(Tensor hidden) {
    Tensor residual = hidden;
    hidden = (*layer_norm1)(hidden);
    hidden = (*self_attn)(hidden);
    hidden = residual + hidden;
    residual = hidden;
    hidden = (*layer_norm2)(hidden);
    hidden = (*mlp)(hidden);
    return residual + hidden;
  }

  std::optional<TowerAttention> self_attn;
  std::optional<nn::LayerNorm> layer_norm1, layer_norm2;
  std::optional<TowerMlp> mlp;
};

struct Tower : nn::Module<Tower> {
  Tower(const Place& place, const TowerPlan& plan)
      : Module(place, plan.name.type("Encoder")),
        layers(child("layers"), plan.layers, [&](const Place& at, int64_t) { return TowerLayer(at, plan); }) {
  }

  Tensor forward(Tensor hidden) {
    const Tensor embedded = hidden;
    for (TowerLayer& layer : layers) hidden = layer(hidden);
    return hidden;
  }

  nn::ModuleList<TowerLayer> layers;
};

struct ImageEmbeddings : nn::Module<ImageEmbeddings> {
  ImageEmbeddings(const Place& place, const ImagePlan& plan)
      : Module(place, plan.tower.name.type("VisionEmbeddings")) {
    if (plan.class_token) class_embedding = parameter("class_embedding", {plan.tower.hidden});
    patch_embedding.emplace(child("patch_embedding"), plan.channels, plan.tower.hidden, plan.patch,
                            plan.patch, 0, !plan.class_token);
    const int64_t positions = plan.patches() + (plan.class_token ? 1 : 0);
    position_embedding.emplace(child("position_embedding"), positions, plan.tower.hidden);
    position_ids = buffer("position_ids", {1, positions}, DType::i64, false);
  }

  Tensor forward(Tensor pixels) {
    Tensor patches = (*patch_embedding)(nn::to(pixels, patch_embedding->weight.dtype()));
    patches = nn::transpose(nn::flatten(patches, 2), 1, 2);
    Tensor classes;
    Tensor embedded = patches;
    if (class_embedding.defined()) {
      classes = nn::expand(class_embedding, {pixels.size(0), 1, -1});
      embedded = nn::cat({classes, patches}, 1);
    }
    return embedded + (*position_embedding)(position_ids);
  }

  Tensor class_embedding, position_ids;
  std::optional<nn::Conv2d> patch_embedding;
  std::optional<nn::Embedding> position_embedding;
};

struct MultiheadAttention : nn::Module<MultiheadAttention> {
  MultiheadAttention(const Place& place, int64_t hidden, int64_t heads)
      : Module(place, "torch.nn.modules.activation.MultiheadAttention"),
        heads(heads),
        in_proj_weight(parameter("in_proj_weight", {3 * hidden, hidden})),
        in_proj_bias(parameter("in_proj_bias", {3 * hidden})),
        out_proj(child("out_proj"), hidden, hidden) {}

  // torch.nn.functional.multi_head_attention_forward with batch_first and need_weights: keys and values are one
  // tensor, queries another (_in_projection_packed).
  Tensor forward(Tensor query, Tensor key) {
    query = nn::transpose(query, 1, 0);
    key = nn::transpose(key, 1, 0);
    const int64_t targets = query.size(0), batch = query.size(1), hidden = query.size(2),
                  sources = key.size(0);
    const int64_t width = hidden / heads;
    const std::vector<Tensor> weights = nn::split(in_proj_weight, Sizes{hidden, 2 * hidden}, 0);
    const std::vector<Tensor> biases = nn::split(in_proj_bias, Sizes{hidden, 2 * hidden}, 0);
    Tensor queries = nn::linear(query, weights[0], biases[0]);
    Tensor both = nn::linear(key, weights[1], biases[1]);
    both = nn::unsqueeze(nn::call("unflatten.int", both, -1, Sizes{2, hidden}), 0);
    both = nn::contiguous(nn::squeeze(nn::transpose(std::move(both), 0, -2), -2));
    Tensor keys = nn::select(both, 0, 0), values = nn::select(both, 0, 1);
    queries = nn::transpose(nn::view(queries, {targets, batch * heads, width}), 0, 1);
    keys = nn::transpose(nn::view(keys, {sources, batch * heads, width}), 0, 1);
    values = nn::transpose(nn::view(values, {sources, batch * heads, width}), 0, 1);
    const Tensor scaled = queries * (1 / std::sqrt(static_cast<double>(width)));
    Tensor scores = nn::call("bmm", scaled, nn::transpose(keys, -2, -1));
    scores = nn::softmax(scores, -1);
    Tensor output = nn::call("bmm", scores, values);
    output = nn::view(nn::contiguous(nn::transpose(output, 0, 1)), {targets * batch, hidden});
    output = nn::linear(output, out_proj.weight, out_proj.bias);
    output = nn::view(output, {targets, batch, hidden});
    scores = nn::mean(nn::view(scores, {batch, heads, targets, sources}), 1, false);
    return nn::transpose(output, 1, 0);
  }

  int64_t heads;
  Tensor in_proj_weight, in_proj_bias;
  nn::Linear out_proj;
};

struct PoolingHead : nn::Module<PoolingHead> {
  PoolingHead(const Place& place, const TowerPlan& plan)
      : Module(place, plan.name.type("MultiheadAttentionPoolingHead")),
        probe(parameter("probe", {1, 1, plan.hidden})),
        attention(child("attention"), plan.hidden, plan.heads),
        layernorm(child("layernorm"), plan.hidden, plan.epsilon),
        mlp(child("mlp"), plan) {}

  Tensor forward(Tensor hidden) {
    const Tensor probes = nn::call("repeat", probe, Sizes{hidden.size(0), 1, 1});
    hidden = attention(probes, hidden);
    const Tensor residual = hidden;
    hidden = layernorm(hidden);
    hidden = residual + mlp(hidden);
    return nn::select(hidden, 1, 0);
  }

  Tensor probe;
  MultiheadAttention attention;
  nn::LayerNorm layernorm;
  TowerMlp mlp;
};

// Pixels → the features of each image.
struct ImageModel : nn::Module<ImageModel> {
  ImageModel(const Place& place, const ImagePlan& plan)
      : Module(place, plan.tower.name.type("VisionModel")), embeddings(child("embeddings"), plan) {
    const TowerPlan& tower = plan.tower;
    if (plan.class_token) pre_norm.emplace(child("pre_layrnorm"), tower.hidden, tower.epsilon);
    encoder.emplace(child("encoder"), tower);
    post_layernorm.emplace(child("post_layernorm"), tower.hidden, tower.epsilon);
    if (plan.head) head.emplace(child("head"), tower);
  }

  Tensor forward(Tensor pixels) {
    Tensor hidden = embeddings(pixels);
    if (pre_norm) hidden = (*pre_norm)(hidden);
    Tensor last = (*encoder)(hidden);
    if (pre_norm) {
      const Tensor pooled = nn::select(last, 1, 0);
      return (*post_layernorm)(pooled);
    }
    last = (*post_layernorm)(last);
    return head ? (*head)(last) : last;
  }

  ImageEmbeddings embeddings;
  std::optional<nn::LayerNorm> pre_norm;
  std::optional<Tower> encoder;
  std::optional<nn::LayerNorm> post_layernorm;
  std::optional<PoolingHead> head;
};

}  // namespace

TowerPlan tower_plan(const Config& config, FamilyName name, int64_t hidden, int64_t heads, bool causal) {
  const bool clip = name.module == "clip";
  TowerPlan plan{.name = std::move(name),
                 .hidden = config.size({"hidden_size"}, hidden),
                 .inner = config.size({"intermediate_size"}, 4 * hidden),
                 .layers = config.layers({"num_hidden_layers"}, 12),
                 .heads = config.size({"num_attention_heads"}, heads),
                 .epsilon = config.real({"layer_norm_eps"}, clip ? 1e-5 : 1e-6),
                 .dropout = config.real({"attention_dropout"}, 0),
                 .activation = config.text({"hidden_act"}, clip ? "quick_gelu" : "gelu_pytorch_tanh"),
                 .where = config.where(),
                 .causal = causal};
  (void)config.divided("hidden_size", plan.hidden, "num_attention_heads", plan.heads);
  return plan;
}

AnyPart tower(const Place& place, const TowerPlan& plan) { return part<Tower>(place, plan); }

ImagePlan image_plan(const Config& vision, const FamilyName& name, int64_t patch) {
  const bool clip = name.module == "clip";
  ImagePlan plan{.tower = tower_plan(vision, name, 768, 12, false),
                 .image = vision.size({"image_size"}, 224),
                 .patch = vision.size({"patch_size"}, patch),
                 .channels = vision.size({"num_channels"}, 3),
                 .class_token = clip,
                 .head = !clip && vision.flag({"vision_use_head"}, true)};
  if (plan.patch > plan.image) vision.reject("patch_size", "is larger than image_size");
  return plan;
}

AnyPart image_model(const Place& place, const ImagePlan& plan) { return part<ImageModel>(place, plan); }

}  // namespace metaprof::configs
