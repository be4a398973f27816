// clip and siglip: an encoder of images and one of texts, compared pair by pair. Names and defaults: transformers
// 5.17, models/clip, models/siglip.

#include <optional>

#include "program/config/families.h"
#include "program/config/layers/towers.h"

namespace metaprof::configs {
namespace {

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
        encoder(tower(child("encoder"), plan.tower)),
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
  AnyPart encoder;
  nn::LayerNorm final_layer_norm;
  std::optional<nn::Linear> head;
};

// sqrt(sum(x²)) over the last dimension (modeling_clip.py, _get_vector_norm).
Tensor vector_norm(const Tensor& x) { return nn::pow(nn::sum(nn::pow(x, 2), -1, true), 0.5); }

struct ClipModel : nn::Module<ClipModel> {
  ClipModel(const Place& place, const TextPlan& text, const ImagePlan& image, int64_t projection)
      : Module(place, "transformers.models.clip.modeling_clip.CLIPModel"),
        logit_scale(parameter("logit_scale", {})),
        text_model(child("text_model"), text),
        vision_model(image_model(child("vision_model"), image)),
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
  AnyPart vision_model;
  nn::Linear visual_projection, text_projection;
};

struct SiglipModel : nn::Module<SiglipModel> {
  SiglipModel(const Place& place, const TextPlan& text, const ImagePlan& image)
      : Module(place, "transformers.models.siglip.modeling_siglip.SiglipModel"),
        logit_scale(parameter("logit_scale", {1})),
        logit_bias(parameter("logit_bias", {1})),
        text_model(child("text_model"), text),
        vision_model(image_model(child("vision_model"), image)) {}

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
  AnyPart vision_model;
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
