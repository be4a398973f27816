// clip and siglip: an encoder of images and one of texts, compared pair by pair. Names and defaults: transformers
// 5.17, models/clip, models/siglip.

#include <cmath>
#include <optional>

#include "frontend/config/families.h"

namespace metaprof::configs {
namespace {

// One of the two encoders.
struct TowerPlan {
  FamilyName name;
  int64_t hidden, inner, layers, heads;
  double epsilon, dropout;
  std::string activation, where;
  bool causal;

  int64_t width() const { return hidden / heads; }
};

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

struct TextPlan {
  TowerPlan tower;
  int64_t vocabulary, positions, end_of_text;
  std::optional<int64_t> head;  ///< width of the projection of the last token: siglip
};

struct TextEmbeddings : nn::Module<TextEmbeddings> {
  TextEmbeddings(const Place& place, const TextPlan& plan)
      : Module(place, plan.tower.name.type("TextEmbeddings")),
        token_embedding(child("token_embedding"), plan.vocabulary, plan.tower.hidden),
        position_embedding(child("position_embedding"), plan.positions, plan.tower.hidden),
        position_ids(buffer("position_ids", {1, plan.positions}, DType::i64, false)) {}

  Tensor forward(Tensor ids) {
    const Tensor positions = ids.size(1) == position_ids.size(1) ? nn::call("alias", position_ids)
                                                                 : nn::slice(position_ids, 1, 0, ids.size(1));
    const Tensor words = token_embedding(ids);
    const Tensor places = position_embedding(positions);
    return words + places;
  }

  nn::Embedding token_embedding, position_embedding;
  Tensor position_ids;
};

// Token ids → the features of one token of each text.
struct TextModel : nn::Module<TextModel> {
  TextModel(const Place& place, const TextPlan& plan)
      : Module(place, plan.tower.name.type("TextModel")),
        end_of_text(plan.end_of_text),
        embeddings(child("embeddings"), plan),
        encoder(child("encoder"), plan.tower),
        final_layer_norm(child("final_layer_norm"), plan.tower.hidden, plan.tower.epsilon) {
    if (plan.head) head.emplace(child("head"), plan.tower.hidden, *plan.head);
  }

  Tensor forward(Tensor ids) {
    ids = nn::view(ids, {-1, ids.size(1)});
    const Tensor hidden = embeddings(ids);
    Tensor last = encoder(hidden);
    last = final_layer_norm(last);
    if (head) return (*head)(nn::select(last, 1, -1));
    const Tensor rows = arange(last.size(0));
    Tensor numbers = nn::call("to.device", ids, kModelDevice, DType::i32);
    if (end_of_text != 2)
      numbers = nn::to(nn::call("eq.Scalar", std::move(numbers), end_of_text), DType::i32);
    const Tensor ends = nn::call("argmax", std::move(numbers), -1);
    return nn::call("index.Tensor", last, std::vector<Tensor>{rows, ends});
  }

  int64_t end_of_text;
  TextEmbeddings embeddings;
  Tower encoder;
  nn::LayerNorm final_layer_norm;
  std::optional<nn::Linear> head;
};

struct ImagePlan {
  TowerPlan tower;
  int64_t image, patch, channels;
  bool class_token;  ///< clip
  bool head;         ///< attention that pools: siglip

  int64_t patches() const { return (image / patch) * (image / patch); }
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

// sqrt(sum(x²)) over the last dimension (modeling_clip.py, _get_vector_norm).
Tensor vector_norm(const Tensor& x) { return nn::pow(nn::sum(nn::pow(x, 2), -1, true), 0.5); }

struct ClipModel : nn::Module<ClipModel> {
  ClipModel(const Place& place, const TextPlan& text, const ImagePlan& image, int64_t projection)
      : Module(place, "transformers.models.clip.modeling_clip.CLIPModel"),
        logit_scale(parameter("logit_scale", {})),
        text_model(child("text_model"), text),
        vision_model(child("vision_model"), image),
        visual_projection(child("visual_projection"), image.tower.hidden, projection, false),
        text_projection(child("text_projection"), text.tower.hidden, projection, false) {}

  // Similarities of each text with each image, [batch, batch].
  Tensor forward(Tensor pixels, Tensor ids) {
    Tensor images = visual_projection(vision_model(pixels));
    Tensor texts = text_projection(text_model(ids));
    const Tensor outputs[] = {images, texts};  // the outputs of both models hold them
    images = images / vector_norm(images);
    texts = texts / vector_norm(texts);
    Tensor logits = nn::matmul(texts, nn::call("t", images));
    return std::move(logits) * nn::call("exp", logit_scale);
  }

  Tensor logit_scale;
  TextModel text_model;
  ImageModel vision_model;
  nn::Linear visual_projection, text_projection;
};

struct SiglipModel : nn::Module<SiglipModel> {
  SiglipModel(const Place& place, const TextPlan& text, const ImagePlan& image)
      : Module(place, "transformers.models.siglip.modeling_siglip.SiglipModel"),
        logit_scale(parameter("logit_scale", {1})),
        logit_bias(parameter("logit_bias", {1})),
        text_model(child("text_model"), text),
        vision_model(child("vision_model"), image) {}

  Tensor forward(Tensor pixels, Tensor ids) {
    Tensor images = vision_model(pixels);
    Tensor texts = text_model(ids);
    const Tensor outputs[] = {images, texts};
    images = images / norm(images);
    texts = texts / norm(texts);
    Tensor logits = nn::matmul(texts, nn::call("t", images));
    return std::move(logits) * nn::call("exp", logit_scale) + logit_bias;
  }

  static Tensor norm(const Tensor& x) { return nn::call("linalg_vector_norm", x, 2, Sizes{-1}, true); }

  Tensor logit_scale, logit_bias;
  TextModel text_model;
  ImageModel vision_model;
};

// modeling_siglip.py: the sigmoid of every pair, +1 for those that belong together.
Tensor siglip_loss(const nn::AnyModule& module, const Tensor& logits) {
  nn::Argument given[] = {logits.size(0), std::nullopt, std::nullopt, kModelDevice};
  const Tensor same = module.make("eye", given);
  Tensor signs = -nn::call("ones_like", logits);
  signs = std::move(signs) + same * 2.0;
  const Tensor likelihood = nn::call("log_sigmoid", signs * logits);
  const Tensor loss = -nn::sum(likelihood, -1, false);
  return nn::call("mean", loss);
}

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

struct Pairs {
  Tensor pixels, ids;
};

Pairs inputs_of_pairs(ModelRecorder& recorder, const ConfigModel& model, const TextPlan& text,
                      const ImagePlan& image) {
  Pairs pairs;
  pairs.pixels =
      recorder.input("pixel_values", DType::f32, {model.batch(), image.channels, image.image, image.image});
  pairs.ids = recorder.input("input_ids", DType::i64, {pairs.pixels.size(0), model.sequence(text.positions)});
  return pairs;
}

}  // namespace

Program clip_program(const ConfigModel& model) {
  const Config text_config = model.config.nested("text_config"),
               vision_config = model.config.nested("vision_config");
  const FamilyName name{"clip", "CLIP"};
  const TextPlan text{.tower = tower_plan(text_config, name, 512, 8, true),
                      .vocabulary = text_config.size({"vocab_size"}, 49408),
                      .positions = text_config.size({"max_position_embeddings"}, 77),
                      .end_of_text = text_config.count({"eos_token_id"}, 49407),
                      .head = {}};
  const ImagePlan image = image_plan(vision_config, name, 32);
  if (!model.architecture("CLIPModel").ends_with("CLIPModel")) model.reject_architecture("CLIPModel");
  ModelRecorder recorder(model);
  const Pairs pairs = inputs_of_pairs(recorder, model, text, image);
  const Tensor labels = recorder.input("labels", DType::i64, {pairs.pixels.size(0)});
  ClipModel made(recorder.root(), text, image, model.config.size({"projection_dim"}, 512));
  const Tensor per_text = made(pairs.pixels, pairs.ids);
  const Tensor per_image = nn::call("t", per_text);
  Tensor loss = nn::cross_entropy(per_text, labels);
  return recorder.finish((std::move(loss) + nn::cross_entropy(per_image, labels)) * 0.5);
}

Program siglip_program(const ConfigModel& model) {
  const Config text_config = model.config.nested("text_config"),
               vision_config = model.config.nested("vision_config");
  const FamilyName name{"siglip", "Siglip"};
  TextPlan text{.tower = tower_plan(text_config, name, 768, 12, false),
                .vocabulary = text_config.size({"vocab_size"}, 32000),
                .positions = text_config.size({"max_position_embeddings"}, 64),
                .end_of_text = 0,
                .head = {}};
  text.head = text_config.size({"projection_size"}, text.tower.hidden);
  const ImagePlan image = image_plan(vision_config, name, 16);
  if (!image.head)
    vision_config.reject("vision_use_head", "without the head there is nothing to compare texts with");
  if (!model.architecture("SiglipModel").ends_with("SiglipModel")) model.reject_architecture("SiglipModel");
  ModelRecorder recorder(model);
  const Pairs pairs = inputs_of_pairs(recorder, model, text, image);
  SiglipModel made(recorder.root(), text, image);
  const Tensor logits = made(pairs.pixels, pairs.ids);
  return recorder.finish(siglip_loss(made, logits));
}

}  // namespace metaprof::configs
