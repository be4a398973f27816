// gemma3: a decoder of texts, and one that sees images through siglip's encoder. Names and defaults: transformers 5.17,
// models/gemma3.

#include <algorithm>
#include <cmath>

#include "program/config/layers/masks.h"
#include "program/config/layers/towers.h"
#include "program/config/llama_families.h"

namespace metaprof::configs {
namespace {

constexpr DecoderDefaults kDefaults{.vocabulary = 262208,
                                    .hidden = 2304,
                                    .inner = 9216,
                                    .layers = 26,
                                    .heads = 8,
                                    .key_heads = 4,
                                    .width = 256,
                                    .positions = 131072,
                                    .activation = "gelu_pytorch_tanh",
                                    .tied = true};

DecoderPlan text_plan(const Config& config) {
  DecoderPlan plan = decoder_plan(config, {"gemma3", "Gemma3"}, kDefaults);
  make_gemma(plan, config);
  plan.norm_after = true;
  plan.attention.scale = scale_of_scalar(config);
  plan.attention.head_norm = AttentionPlan::HeadNorm::after_transposing;
  plan.logit_cap = config.real({"final_logit_softcapping"}, 0);
  const int64_t pattern = config.size({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  read_windows(plan, config, 4096, [pattern](int64_t layer) { return (layer + 1) % pattern != 0; });
  // A table of positions for each kind of layer that there is.
  plan.tables.clear();
  for (const bool slides : {false, true})
    if (std::ranges::find(plan.slides, slides) != plan.slides.end())
      plan.tables.emplace_back(slides ? "sliding_attention_" : "full_attention_");
  for (const bool slides : plan.slides)
    plan.table_of_layer.push_back(slides && plan.tables.size() > 1 ? 1 : 0);
  add_gated_mlp(plan, config, kDefaults, false);
  return plan;
}

// Features of patches → those of an image's tokens, of the width of texts.
struct Projector : nn::Module<Projector> {
  Projector(const Place& place, const ImagePlan& image, int64_t hidden, int64_t tokens)
      : Module(place, "transformers.models.gemma3.modeling_gemma3.Gemma3MultiModalProjector"),
        side(image.image / image.patch),
        kernel(side / static_cast<int64_t>(std::sqrt(static_cast<double>(tokens)))),
        mm_input_projection_weight(parameter("mm_input_projection_weight", {image.tower.hidden, hidden})),
        mm_soft_emb_norm(child("mm_soft_emb_norm"),
                         "transformers.models.gemma3.modeling_gemma3.Gemma3RMSNorm", image.tower.hidden,
                         image.tower.epsilon, RmsNorm::Kind::one_plus) {}

  Tensor forward(Tensor features) {
    Tensor pooled = nn::transpose(features, 1, 2);
    pooled = nn::contiguous(nn::reshape(std::move(pooled), {features.size(0), features.size(2), side, side}));
    pooled = nn::call("avg_pool2d", std::move(pooled), Sizes{kernel, kernel}, Sizes{kernel, kernel});
    pooled = nn::transpose(nn::flatten(std::move(pooled), 2), 1, 2);
    const Tensor normed = mm_soft_emb_norm(pooled);
    return nn::call("type_as", nn::matmul(normed, mm_input_projection_weight), features);
  }

  int64_t side, kernel;
  Tensor mm_input_projection_weight;
  RmsNorm mm_soft_emb_norm;
};

struct Gemma3Plan {
  DecoderPlan text;
  ImagePlan image;
  int64_t image_tokens, image_token;
};

// Queries and keys of one image see each other (masking_utils.py, blockwise_overlay).
Tensor same_image(const Tensor& blocks) {
  const Tensor queries = nn::unsqueeze(nn::unsqueeze(blocks, 1), 3),
               keys = nn::unsqueeze(nn::unsqueeze(blocks, 1), 1);
  const Tensor same = nn::call("eq.Tensor", queries, keys);
  return nn::call("bitwise_and.Tensor", same, nn::call("ge.Scalar", queries, 0));
}

struct Gemma3Model : nn::Module<Gemma3Model> {
  Gemma3Model(const Place& place, const Gemma3Plan& plan)
      : Module(place, plan.text.name.type("Model")),
        image_token(plan.image_token),
        vision_tower(image_model(child("vision_tower"), plan.image)),
        multi_modal_projector(child("multi_modal_projector"), plan.image, plan.text.hidden,
                              plan.image_tokens),
        language_model(child("language_model"), plan.text, "TextModel") {}

  // `pixels`, `kinds`: undefined where there is no image; else kinds is 1 for tokens of images.
  Tensor forward(Tensor ids, Tensor pixels, Tensor kinds) {
    Tensor embedded = language_model.embed(ids);
    if (pixels.defined()) {
      const Tensor features = multi_modal_projector(vision_tower(pixels));
      const Tensor places = nn::call("eq.Scalar", ids, image_token);
      embedded = nn::call("masked_scatter", embedded, nn::unsqueeze(places, -1), features);
    }
    if (!kinds.defined()) return language_model.run(embedded);
    return language_model.run(embedded, masks(embedded, block_ids(kinds)));
  }

  // modeling_gemma3.py, get_block_sequence_ids_for_mask: which image a token is of, -1 for words.
  Tensor block_ids(const Tensor& kinds) const {
    const Tensor is_image = nn::call("eq.Scalar", kinds, 1);
    const Tensor before = nn::slice(nn::call("constant_pad_nd", is_image, Sizes{1, 0}, 0), 1, 0, -1);
    const Tensor starts = nn::call("bitwise_and.Tensor", is_image, nn::call("bitwise_not", before));
    const Tensor images = nn::call("sub.Tensor", nn::call("cumsum", nn::to(starts, DType::i32), 1), 1);
    return nn::call("where.ScalarOther", is_image, images, -1);
  }

  std::pair<Tensor, Tensor> masks(const Tensor& embedded, const Tensor& blocks) const {
    const Tensor before = causal_mask(*this, embedded);
    const Tensor whole = nn::call("bitwise_or.Tensor", before, same_image(blocks));
    const Tensor near = causal_mask(*this, embedded, language_model.plan.window);
    return {whole, nn::call("bitwise_and.Tensor", whole, near)};
  }

  int64_t image_token;
  AnyPart vision_tower;
  Projector multi_modal_projector;
  Decoder language_model;
};

struct Gemma3Conditional : nn::Module<Gemma3Conditional> {
  Gemma3Conditional(const Place& place, const Gemma3Plan& plan)
      : Module(place, plan.text.name.type("ForConditionalGeneration")),
        model(child("model"), plan),
        lm_head(plan.text.tied
                    ? nn::Linear(child("lm_head"), model.language_model.embed_tokens.weight, false)
                    : nn::Linear(child("lm_head"), plan.text.hidden, plan.text.vocabulary, false)) {}

  Tensor forward(Tensor ids, Tensor pixels, Tensor kinds) {
    const Tensor hidden = model(ids, pixels, kinds);
    return lm_head(nn::slice(hidden, 1, 0, nn::kEnd));
  }

  Gemma3Model model;
  nn::Linear lm_head;
};

}  // namespace

Program gemma3_text_program(const ConfigModel& model) {
  return llama_like_program(model, text_plan(model.config), kDefaults);
}

Program gemma3_program(const ConfigModel& model) {
  const Config& config = model.config;
  const Config text = config.nested("text_config"), vision = config.nested("vision_config");
  const FamilyName siglip{"siglip", "Siglip"};
  Gemma3Plan plan{.text = text_plan(text),
                  .image = image_plan(vision, siglip, 16),
                  .image_tokens = config.size({"mm_tokens_per_image"}, 256),
                  .image_token = config.count({"image_token_index", "image_token_id"}, 262144)};
  plan.text.tied = config.flag({"tie_word_embeddings"}, true);
  if (plan.image.head) vision.reject("vision_use_head", "expected false: images are seen by their patches");
  if (!model.architecture("Gemma3ForConditionalGeneration").ends_with("ForConditionalGeneration"))
    model.reject_architecture("Gemma3ForConditionalGeneration");
  const int64_t side = plan.image.image / plan.image.patch;
  if (plan.image_tokens > side * side)
    config.reject("mm_tokens_per_image", "an image has fewer patches than that");
  ModelRecorder recorder(model);
  const int64_t positions = text.size({"max_position_embeddings"}, kDefaults.positions);
  const Tensor ids = recorder.input("input_ids", DType::i64, {model.batch(), model.sequence(positions)});
  Tensor pixels, kinds;
  if (recorder.is_given("pixel_values")) {
    pixels = recorder.input("pixel_values", DType::f32,
                            {model.batch(), plan.image.channels, plan.image.image, plan.image.image});
    kinds = recorder.input("token_type_ids", DType::i64, ids.sizes());
  }
  const Tensor labels = recorder.input("labels", DType::i64, ids.sizes());
  Gemma3Conditional made(recorder.root(), plan);
  const Tensor logits = made(ids, pixels, kinds);
  return recorder.finish(token_loss(logits, labels));
}

}  // namespace metaprof::configs
