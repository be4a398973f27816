// Families whose layers are llama's with parts exchanged. Defaults and names are those of the classes in
// transformers 5.17 (models/FAMILY/configuration_FAMILY.py, modeling_FAMILY.py).

#include "program/config/llama_families.h"

#include <algorithm>
#include <cmath>

#include "program/config/layers/decoder.h"

namespace metaprof::configs {
namespace {

int64_t head_width(const Config& config, const DecoderDefaults& defaults, const AttentionPlan& attention) {
  if (const auto given = config.given_size({"head_dim"})) return *given;
  if (defaults.width > 0) return defaults.width;
  return config.divided("hidden_size", attention.hidden, "num_attention_heads", attention.heads);
}

}  // namespace

DecoderPlan decoder_plan(const Config& config, FamilyName name, const DecoderDefaults& defaults) {
  DecoderPlan plan;
  plan.name = std::move(name);
  plan.vocabulary = config.size({"vocab_size"}, defaults.vocabulary);
  plan.hidden = config.size({"hidden_size"}, defaults.hidden);
  plan.layers = config.layers({"num_hidden_layers"}, defaults.layers);
  plan.epsilon = config.real({"rms_norm_eps", "norm_epsilon"}, defaults.epsilon);
  plan.tied = config.flag({"tie_word_embeddings"}, defaults.tied);
  AttentionPlan& attention = plan.attention;
  attention.hidden = plan.hidden;
  attention.heads = config.size({"num_attention_heads"}, defaults.heads);
  const bool all = defaults.key_heads == 0 || config.is_null("num_key_value_heads");
  attention.key_heads = config.size({"num_key_value_heads"}, all ? attention.heads : defaults.key_heads);
  if (attention.heads % attention.key_heads != 0)
    config.reject("num_key_value_heads", fmt::format("{} heads cannot share {} heads of keys and values",
                                                     attention.heads, attention.key_heads));
  attention.width = head_width(config, defaults, attention);
  attention.scale = 1 / std::sqrt(static_cast<double>(attention.width));
  attention.dropout = config.real({"attention_dropout"}, 0);
  plan.rotary_width = attention.width;
  plan.cached = {.heads = attention.key_heads, .first = attention.width, .second = attention.width};
  return plan;
}

void add_gated_mlp(DecoderPlan& plan, const Config& config, const DecoderDefaults& defaults, bool bias) {
  const int64_t inner = config.size({"intermediate_size"}, defaults.inner);
  const std::string activation = config.text({"hidden_act", "hidden_activation"}, defaults.activation);
  plan.make_feed_forward = [=, where = config.where()](const Place& place, const DecoderPlan& decoder,
                                                       int64_t) {
    return AnyPart(
        [made = std::make_shared<GatedMlp>(place, decoder.name.type("MLP"), decoder.hidden, inner, bias,
                                           activation, where)](Tensor x) { return (*made)(std::move(x)); });
  };
}

void read_windows(DecoderPlan& plan, const Config& config, int64_t usual,
                  const std::function<bool(int64_t)>& slides) {
  if (!config.is_null("sliding_window")) plan.window = config.size({"sliding_window"}, usual);
  if (!slides) return;
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty() && types.size() != static_cast<size_t>(plan.layers))
    config.reject("layer_types",
                  fmt::format("has {} layers, and num_hidden_layers is {}", types.size(), plan.layers));
  for (int64_t i = 0; i < plan.layers; ++i) {
    const std::string type = types.empty() ? "" : types[static_cast<size_t>(i)];
    if (!type.empty() && type != "sliding_attention" && type != "full_attention")
      config.reject("layer_types",
                    fmt::format("expected sliding_attention or full_attention, got \"{}\"", type));
    plan.slides.push_back(type.empty() ? slides(i) : type == "sliding_attention");
  }
  const bool any = std::ranges::count(plan.slides, true) > 0;
  if (any && plan.window == 0)
    config.reject("sliding_window", "is missing, and layers have sliding attention");
}

// A call behind a cache: of the next token, unless more were asked for. The first one, of a prompt, finds an empty cache.
static Program cached_language_model_program(const ConfigModel& model, DecoderPlan plan, int64_t positions) {
  ModelRecorder recorder(model);
  plan.last_logits = *model.sizes.cached == 0;
  const int64_t usual = plan.last_logits ? model.sequence(positions) : 1;
  const Tensor ids =
      recorder.input("input_ids", DType::i64, {model.batch(), model.sizes.sequence.value_or(usual)});
  plan.cache = std::make_shared<KeyCache>(*model.sizes.cached);
  CausalDecoder made(recorder.root(), plan);
  plan.fill_cache(made, made.model.embed_tokens.weight, ids.size(0));
  const Tensor logits = made(ids);
  return recorder.finish_cached(logits, plan.cache->tensors());
}

Program llama_like_program(const ConfigModel& model, const DecoderPlan& plan,
                           const DecoderDefaults& defaults) {
  if (!model.architecture("ForCausalLM").ends_with("ForCausalLM"))
    model.reject_architecture(plan.name.prefix + "ForCausalLM");
  const int64_t positions = model.config.size({"max_position_embeddings"}, defaults.positions);
  if (model.sizes.cached) return cached_language_model_program(model, plan, positions);
  return causal_language_model_program<CausalDecoder>(model, positions, plan);
}

namespace {

// phi3: gate and up are one projection.
struct FusedMlp : nn::Module<FusedMlp> {
  FusedMlp(const Place& place, const DecoderPlan& plan, int64_t inner, const std::string& activation,
           const std::string& where)
      : Module(place, plan.name.type("MLP")),
        gate_up_proj(child("gate_up_proj"), plan.hidden, 2 * inner, false),
        down_proj(child("down_proj"), inner, plan.hidden, false),
        activation_fn(child("activation_fn"), activation, where) {}

  Tensor forward(Tensor hidden) {
    Tensor up = gate_up_proj(hidden);
    std::vector<Tensor> halves = nn::chunk(std::move(up), 2, -1);
    const Tensor gate = std::move(halves[0]);
    up = std::move(halves[1]);
    up = up * activation_fn(gate);
    return down_proj(up);
  }

  nn::Linear gate_up_proj, down_proj;
  Activation activation_fn;
};

// starcoder2: no gate.
struct TwoLayerMlp : nn::Module<TwoLayerMlp> {
  TwoLayerMlp(const Place& place, const DecoderPlan& plan, int64_t inner, bool bias, double dropout,
              const std::string& activation, const std::string& where)
      : Module(place, plan.name.type("MLP")),
        c_fc(child("c_fc"), plan.hidden, inner, bias),
        c_proj(child("c_proj"), inner, plan.hidden, bias),
        act(child("act"), activation, where),
        probability(dropout) {}

  Tensor forward(Tensor hidden) {
    hidden = c_fc(hidden);
    hidden = act(hidden);
    hidden = c_proj(hidden);
    return nn::dropout(std::move(hidden), probability);
  }

  nn::Linear c_fc, c_proj;
  Activation act;
  double probability;
};

// Windows hold from a layer on, and only if they are switched on.
void read_qwen_windows(DecoderPlan& plan, const Config& config) {
  if (!config.flag({"use_sliding_window"}, false)) {
    const std::vector<std::string> types = config.texts("layer_types");
    if (std::ranges::find(types, "sliding_attention") != types.end())
      config.reject("layer_types", "layers have sliding attention, and use_sliding_window is false");
    return;
  }
  const int64_t first = config.count({"max_window_layers"}, 28);
  read_windows(plan, config, 4096, [first](int64_t layer) { return layer >= first; });
}

}  // namespace

void make_gemma(DecoderPlan& plan, const Config& config) {
  plan.norm = RmsNorm::Kind::one_plus;
  plan.scales_embedding = true;
  plan.padding = config.count({"pad_token_id"}, 0);
  plan.attention.bias = plan.attention.output_bias = config.flag({"attention_bias"}, false);
  if (config.flag({"use_bidirectional_attention"}, false))
    config.reject("use_bidirectional_attention", "attention to later tokens is not built");
}

double scale_of_scalar(const Config& config) {
  return 1 / std::sqrt(config.real({"query_pre_attn_scalar"}, 256));
}

Program llama_program(const ConfigModel& model) {
  const Config& config = model.config;
  const DecoderDefaults defaults;
  DecoderPlan plan = decoder_plan(config, {"llama", "Llama"}, defaults);
  // The class refuses this even where head_dim is given.
  (void)config.divided("hidden_size", plan.hidden, "num_attention_heads", plan.attention.heads);
  plan.attention.bias = plan.attention.output_bias = config.flag({"attention_bias"}, false);
  add_gated_mlp(plan, config, defaults, config.flag({"mlp_bias"}, false));
  return llama_like_program(model, plan, defaults);
}

constexpr DecoderDefaults kMistral{.inner = 14336, .key_heads = 8, .positions = 131072};

Program mistral_program(const ConfigModel& model) {
  // With layer_types it is a ministral, whose layers differ (configuration_auto.py).
  if (!model.config.texts("layer_types").empty()) return ministral_program(model);
  DecoderPlan plan = decoder_plan(model.config, {"mistral", "Mistral"}, kMistral);
  read_windows(plan, model.config, 4096);
  add_gated_mlp(plan, model.config, kMistral, false);
  return llama_like_program(model, plan, kMistral);
}

Program ministral_program(const ConfigModel& model) {
  DecoderPlan plan = decoder_plan(model.config, {"ministral", "Ministral"}, kMistral);
  const bool has_window = !model.config.is_null("sliding_window");
  read_windows(plan, model.config, 4096, [has_window](int64_t) { return has_window; });
  add_gated_mlp(plan, model.config, kMistral, false);
  return llama_like_program(model, plan, kMistral);
}

Program qwen2_program(const ConfigModel& model) {
  const DecoderDefaults defaults{.vocabulary = 151936, .inner = 22016, .key_heads = 32, .positions = 32768};
  DecoderPlan plan = decoder_plan(model.config, {"qwen2", "Qwen2"}, defaults);
  plan.attention.bias = true;
  read_qwen_windows(plan, model.config);
  add_gated_mlp(plan, model.config, defaults, false);
  return llama_like_program(model, plan, defaults);
}

Program qwen3_program(const ConfigModel& model) {
  const DecoderDefaults defaults{
      .vocabulary = 151936, .inner = 22016, .key_heads = 32, .width = 128, .positions = 32768};
  DecoderPlan plan = decoder_plan(model.config, {"qwen3", "Qwen3"}, defaults);
  plan.attention.bias = plan.attention.output_bias = model.config.flag({"attention_bias"}, false);
  plan.attention.head_norm = AttentionPlan::HeadNorm::before_transposing;
  read_qwen_windows(plan, model.config);
  add_gated_mlp(plan, model.config, defaults, false);
  return llama_like_program(model, plan, defaults);
}

Program gemma_program(const ConfigModel& model) {
  const DecoderDefaults defaults{.vocabulary = 256000,
                                 .hidden = 3072,
                                 .inner = 24576,
                                 .layers = 28,
                                 .heads = 16,
                                 .key_heads = 16,
                                 .width = 256,
                                 .positions = 8192,
                                 .activation = "gelu_pytorch_tanh",
                                 .tied = true};
  DecoderPlan plan = decoder_plan(model.config, {"gemma", "Gemma"}, defaults);
  make_gemma(plan, model.config);
  add_gated_mlp(plan, model.config, defaults, false);
  return llama_like_program(model, plan, defaults);
}

Program gemma2_program(const ConfigModel& model) {
  const DecoderDefaults defaults{.vocabulary = 256000,
                                 .hidden = 2304,
                                 .inner = 9216,
                                 .layers = 26,
                                 .heads = 8,
                                 .key_heads = 4,
                                 .width = 256,
                                 .positions = 8192,
                                 .activation = "gelu_pytorch_tanh",
                                 .tied = true};
  DecoderPlan plan = decoder_plan(model.config, {"gemma2", "Gemma2"}, defaults);
  make_gemma(plan, model.config);
  plan.norm_after = true;
  plan.attention.scale = scale_of_scalar(model.config);
  read_windows(plan, model.config, 4096, [](int64_t layer) { return layer % 2 == 0; });
  plan.logit_cap = model.config.is_null("final_logit_softcapping")
                       ? 0
                       : model.config.real({"final_logit_softcapping"}, 30);
  add_gated_mlp(plan, model.config, defaults, false);
  return llama_like_program(model, plan, defaults);
}

Program phi3_program(const ConfigModel& model) {
  const Config& config = model.config;
  const DecoderDefaults defaults{
      .vocabulary = 32064, .hidden = 3072, .inner = 8192, .positions = 4096, .epsilon = 1e-5};
  DecoderPlan plan = decoder_plan(config, {"phi3", "Phi3"}, defaults);
  read_windows(plan, config, 0);
  const double factor = config.nested("rope_parameters")
                            .real({"partial_rotary_factor"}, config.real({"partial_rotary_factor"}, 1));
  plan.rotary_width = static_cast<int64_t>(static_cast<double>(plan.attention.width) * factor);
  plan.padding = config.count({"pad_token_id"}, 32000);
  plan.attention.fused = true;
  plan.residual_dropout = config.real({"resid_pdrop"}, 0);
  const int64_t inner = config.size({"intermediate_size"}, defaults.inner);
  const std::string activation = config.text({"hidden_act"}, defaults.activation);
  plan.make_feed_forward = [=, where = config.where()](const Place& place, const DecoderPlan& decoder,
                                                       int64_t) {
    return AnyPart([made = std::make_shared<FusedMlp>(place, decoder, inner, activation, where)](Tensor x) {
      return (*made)(std::move(x));
    });
  };
  return llama_like_program(model, plan, defaults);
}

Program olmo2_program(const ConfigModel& model) {
  const DecoderDefaults defaults{.vocabulary = 50304, .epsilon = 1e-5};
  DecoderPlan plan = decoder_plan(model.config, {"olmo2", "Olmo2"}, defaults);
  plan.attention.bias = plan.attention.output_bias = model.config.flag({"attention_bias"}, false);
  plan.attention.head_norm = AttentionPlan::HeadNorm::whole_projection;
  plan.norm = RmsNorm::Kind::scaled_before;
  plan.norm_before = false;
  plan.norm_after = true;
  plan.rotary_32bits = true;
  add_gated_mlp(plan, model.config, defaults, false);
  return llama_like_program(model, plan, defaults);
}

Program starcoder2_program(const ConfigModel& model) {
  const Config& config = model.config;
  const DecoderDefaults defaults{.vocabulary = 49152,
                                 .hidden = 3072,
                                 .inner = 12288,
                                 .layers = 30,
                                 .heads = 24,
                                 .key_heads = 2,
                                 .positions = 4096,
                                 .epsilon = 1e-5,
                                 .activation = "gelu_pytorch_tanh",
                                 .tied = true};
  DecoderPlan plan = decoder_plan(config, {"starcoder2", "Starcoder2"}, defaults);
  const bool bias = config.flag({"use_bias"}, true);
  const double dropout = config.real({"residual_dropout"}, 0);
  read_windows(plan, config, 0);
  plan.layer_norm = true;
  plan.embedding_dropout = config.real({"embedding_dropout"}, 0);
  plan.attention.bias = plan.attention.output_bias = bias;
  plan.attention.residual_dropout = dropout;
  const int64_t inner = config.size({"intermediate_size"}, defaults.inner);
  const std::string activation = config.text({"hidden_act"}, defaults.activation);
  plan.make_feed_forward = [=, where = config.where()](const Place& place, const DecoderPlan& decoder,
                                                       int64_t) {
    return AnyPart([made = std::make_shared<TwoLayerMlp>(place, decoder, inner, bias, dropout, activation,
                                                         where)](Tensor x) { return (*made)(std::move(x)); });
  };
  return llama_like_program(model, plan, defaults);
}

}  // namespace metaprof::configs
