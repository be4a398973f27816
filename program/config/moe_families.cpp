// Families with mixtures of experts: llama's layers, in which a router sends each token to a few of many
// feed-forward parts. Names and defaults: transformers 5.17, models/mixtral, qwen3_moe, gpt_oss, deepseek_v2,
// deepseek_v3.

#include <algorithm>
#include <cmath>

#include "program/config/families.h"
#include "program/config/layers/experts.h"
#include "program/config/layers/latent_attention.h"
#include "program/config/llama_families.h"

namespace metaprof::configs {
namespace {

struct RouterPlan {
  enum class Kind : uint8_t { mixtral, qwen3, gpt_oss, deepseek_v2, deepseek_v3 };
  Kind kind = Kind::mixtral;
  int64_t experts = 0, chosen = 0, hidden = 0;
  int64_t groups = 1, chosen_groups = 1;
  bool normalized = true, grouped = false;
  double factor = 1;
  std::string type;
};

// The values and the indices of the largest `count` of the last dimension.
std::vector<Tensor> top(const Tensor& scores, int64_t count, bool sorted = true) {
  return nn::call_all("topk", scores, count, -1, true, sorted);
}

// Rows [tokens, hidden] → logits and weights [tokens, chosen …], i64[tokens, chosen].
struct Router : nn::Module<Router> {
  Router(const Place& place, const RouterPlan& plan)
      : Module(place, plan.type), plan(plan), weight(parameter("weight", {plan.experts, plan.hidden})) {
    if (plan.kind == RouterPlan::Kind::gpt_oss) bias = parameter("bias", {plan.experts});
    if (plan.kind == RouterPlan::Kind::deepseek_v3)
      correction = buffer("e_score_correction_bias", {plan.experts}, DType::f32, true);
  }

  Choice forward(Tensor rows) {
    switch (plan.kind) {
      case RouterPlan::Kind::mixtral:
      case RouterPlan::Kind::qwen3: return by_probability(nn::reshape(rows, {-1, plan.hidden}));
      case RouterPlan::Kind::gpt_oss: return among_chosen(rows);
      case RouterPlan::Kind::deepseek_v2: return by_wide_probability(nn::view(rows, {-1, plan.hidden}));
      case RouterPlan::Kind::deepseek_v3: return by_groups(nn::view(rows, {-1, plan.hidden}));
    }
    return {};
  }

  Choice by_probability(const Tensor& rows) {
    const Tensor logits = nn::linear(rows, weight, Tensor());
    const bool mixtral = plan.kind == RouterPlan::Kind::mixtral;
    const Tensor probabilities =
        mixtral ? nn::softmax(nn::to(logits, DType::f32), -1) : nn::softmax(logits, -1, DType::f32);
    std::vector<Tensor> best = top(probabilities, plan.chosen);
    if (plan.normalized) best[0] = nn::call("div_.Tensor", best[0], nn::sum(best[0], -1, true));
    if (!mixtral) best[0] = nn::to(best[0], logits.dtype());
    return {logits, best[0], best[1]};
  }

  Choice among_chosen(const Tensor& rows) {
    const Tensor logits = nn::linear(rows, weight, bias);
    const std::vector<Tensor> best = top(logits, plan.chosen);
    const Tensor scores = nn::call("softmax.int", best[0], 1, best[0].dtype());
    return {logits, scores, best[1]};
  }

  Tensor wide_logits(const Tensor& rows) const {
    const Tensor wide = nn::to(rows, DType::f32);
    return nn::linear(wide, nn::to(weight, DType::f32), Tensor());
  }

  // 1 for experts of the chosen groups: a mask over all experts.
  Tensor mask_of(const Tensor& group_scores) const {
    const Tensor groups = top(group_scores, plan.chosen_groups, false)[1];
    const Tensor chosen = nn::call("zeros_like", group_scores);
    (void)nn::call("scatter_.value", chosen, 1, groups, 1.0);
    const Tensor wide = nn::expand(nn::unsqueeze(chosen, -1), {-1, plan.groups, plan.experts / plan.groups});
    return nn::to(nn::reshape(wide, {-1, plan.experts}), DType::b8);
  }

  Choice by_wide_probability(const Tensor& rows) {
    const Tensor logits = wide_logits(rows);
    Tensor scores = nn::softmax(logits, -1, DType::f32);
    if (plan.grouped) {
      const Tensor by_group = nn::view(scores, {-1, plan.groups, plan.experts / plan.groups});
      const Tensor mask = mask_of(nn::call_all("max.dim", by_group, -1)[0]);
      scores = nn::call("masked_fill.Scalar", scores, nn::call("bitwise_not", mask), 0.0);
    }
    std::vector<Tensor> best = top(scores, plan.chosen, false);
    return {logits, best[0] * plan.factor, best[1]};
  }

  Choice by_groups(const Tensor& rows) {
    const Tensor logits = wide_logits(rows);
    const Tensor scores = nn::sigmoid(logits);
    Tensor for_choice = scores + correction;
    const Tensor by_group = nn::view(for_choice, {-1, plan.groups, plan.experts / plan.groups});
    const Tensor group_scores = nn::sum(top(by_group, 2)[0], -1, false);
    const Tensor mask = mask_of(group_scores);
    for_choice = nn::call("masked_fill.Scalar", for_choice, nn::call("bitwise_not", mask), -INFINITY);
    const Tensor chosen = top(for_choice, plan.chosen, false)[1];
    Tensor weights = nn::call("gather", scores, 1, chosen);
    if (plan.normalized) {
      const Tensor sum = nn::sum(weights, -1, true) + 1e-20;
      weights = nn::call("div_.Tensor", weights, sum);
    }
    return {logits, weights * plan.factor, chosen};
  }

  RouterPlan plan;
  Tensor weight, bias, correction;
};

struct MixturePlan {
  std::string type, router_name, shared_type;
  bool router_first = true;
  int64_t shared_inner = 0;  ///< of experts that take every token; 0: there are none
  RouterPlan router;
  ExpertPlan experts;
};

struct Mixture : nn::Module<Mixture> {
  Mixture(const Place& place, const MixturePlan& plan) : Module(place, plan.type) {
    if (plan.router_first) router.emplace(child(plan.router_name), plan.router);
    experts.emplace(child("experts"), plan.experts);
    if (!plan.router_first) router.emplace(child(plan.router_name), plan.router);
    if (plan.shared_inner > 0)
      shared_experts.emplace(child("shared_experts"), plan.shared_type, plan.experts.hidden,
                             plan.shared_inner, false, plan.experts.activation, plan.experts.where);
  }

  Tensor forward(Tensor hidden) {
    const Tensor residual = hidden;
    const Sizes sizes = hidden.sizes();
    if (shared_experts) {
      const Choice choice = (*router)(hidden);
      hidden = nn::view(hidden, {-1, sizes[2]});
      hidden = nn::view((*experts)(hidden, choice.experts, choice.weights), sizes);
      return hidden + (*shared_experts)(residual);
    }
    hidden = nn::view(hidden, {-1, sizes[2]});
    const Choice choice = (*router)(hidden);
    hidden = (*experts)(hidden, choice.experts, choice.weights);
    return nn::reshape(hidden, sizes);
  }

  std::optional<Router> router;
  std::optional<Experts> experts;
  std::optional<GatedMlp> shared_experts;
};

using FeedForward = std::function<AnyPart(const Place&, const DecoderPlan&, int64_t)>;

// A mixture in the layers that `sparse` names, the dense part in the others.
FeedForward feed_forward_of(const MixturePlan& plan, FeedForward dense, std::function<bool(int64_t)> sparse) {
  return [=](const Place& place, const DecoderPlan& decoder, int64_t layer) -> AnyPart {
    if (!sparse(layer)) return dense(place, decoder, layer);
    return [made = std::make_shared<Mixture>(place, plan)](Tensor x) { return (*made)(std::move(x)); };
  };
}

MixturePlan mixture_plan(const Config& config, const DecoderPlan& decoder, RouterPlan::Kind kind) {
  const std::string where = config.where(), activation = config.text({"hidden_act"}, "silu");
  MixturePlan plan;
  plan.router_name = "gate";
  plan.router.kind = kind;
  plan.router.hidden = decoder.hidden;
  plan.router.type = decoder.name.type("TopKRouter");
  plan.experts.hidden = decoder.hidden;
  plan.experts.type = decoder.name.type("Experts");
  plan.experts.activation = activation;
  plan.experts.where = where;
  return plan;
}

void set_counts(MixturePlan& plan, const Config& config, int64_t experts, int64_t chosen) {
  if (chosen > experts)
    config.reject("num_experts_per_tok", fmt::format("{} of {} experts", chosen, experts));
  plan.router.experts = plan.experts.experts = experts;
  plan.router.chosen = plan.experts.chosen = chosen;
}

bool is_every(int64_t) { return true; }

// yarn changes the scale of scores (modeling_rope_utils.py, yarn_apply_mscale).
double latent_scale(const Config& config, double width) {
  double scale = 1 / std::sqrt(width);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const Config rope = config.nested(key);
    const double all = rope.real({"mscale_all_dim"}, 0), factor = rope.real({"factor"}, 1);
    if (all <= 0 || factor <= 1) continue;
    const double m = 0.1 * all * std::log(factor) + 1;
    return scale * m * m;
  }
  return scale;
}

Program deepseek_program(const ConfigModel& model, bool third) {
  const Config& config = model.config;
  const DecoderDefaults defaults = third ? DecoderDefaults{.vocabulary = 129280,
                                                           .hidden = 7168,
                                                           .inner = 18432,
                                                           .layers = 61,
                                                           .heads = 128,
                                                           .width = 64,
                                                           .positions = 4096}
                                         : DecoderDefaults{.vocabulary = 102400, .width = 64};
  DecoderPlan plan = decoder_plan(
      config, third ? FamilyName{"deepseek_v3", "DeepseekV3"} : FamilyName{"deepseek_v2", "DeepseekV2"},
      defaults);
  LatentPlan latent;
  latent.hidden = plan.hidden;
  latent.heads = plan.attention.heads;
  if (!config.is_null("q_lora_rank")) latent.query_rank = config.size({"q_lora_rank"}, 1536);
  latent.key_rank = config.size({"kv_lora_rank"}, 512);
  latent.plain = config.size({"qk_nope_head_dim"}, 128);
  latent.turned = config.size({"qk_rope_head_dim"}, 64);
  latent.value = config.size({"v_head_dim"}, 128);
  latent.bias = config.flag({"attention_bias"}, false);
  latent.interleaved = config.flag({"rope_interleave"}, true);
  latent.complex = !third;
  latent.dropout = plan.attention.dropout;
  latent.scale = latent_scale(config, static_cast<double>(latent.plain + latent.turned));
  plan.rotary_width = latent.turned;
  plan.rotary_complex = !third;
  plan.cached = {.heads = 1, .first = latent.key_rank, .second = latent.turned};
  plan.make_attention = [latent](const Place& place, const DecoderPlan& decoder, int64_t index) {
    return latent_attention(place, decoder, latent, index);
  };
  MixturePlan mixture =
      mixture_plan(config, plan, third ? RouterPlan::Kind::deepseek_v3 : RouterPlan::Kind::deepseek_v2);
  mixture.type = plan.name.type(third ? "MoE" : "Moe");
  mixture.router.type = plan.name.type("TopkRouter");
  mixture.router_first = false;
  set_counts(mixture, config,
             config.size({"n_routed_experts", "num_experts", "num_local_experts"}, third ? 256 : 64),
             config.size({"num_experts_per_tok"}, third ? 8 : 1));
  mixture.experts.inner = config.size({"moe_intermediate_size"}, third ? 2048 : 1407);
  mixture.shared_type = plan.name.type("MLP");
  mixture.shared_inner = mixture.experts.inner * config.size({"n_shared_experts"}, third ? 1 : 2);
  RouterPlan& router = mixture.router;
  router.factor = config.real({"routed_scaling_factor"}, third ? 2.5 : 1);
  router.normalized = config.flag({"norm_topk_prob"}, third);
  router.grouped = third || config.text({"topk_method"}, "greedy") == "group_limited_greedy";
  router.groups = config.size({"n_group"}, third ? 8 : 1);
  router.chosen_groups = config.size({"topk_group"}, third ? 4 : 1);
  (void)config.divided("n_routed_experts", router.experts, "n_group", router.groups);
  if (router.chosen_groups > router.groups)
    config.reject("topk_group", "more groups are chosen than there are");
  add_gated_mlp(plan, config, defaults, false);
  const int64_t dense_layers = config.count({"first_k_dense_replace"}, third ? 3 : 0);
  plan.make_feed_forward =
      feed_forward_of(mixture, plan.make_feed_forward, [=](int64_t layer) { return layer >= dense_layers; });
  return llama_like_program(model, plan, defaults);
}

}  // namespace

Program mixtral_program(const ConfigModel& model) {
  const Config& config = model.config;
  const DecoderDefaults defaults{.key_heads = 8, .positions = 131072, .epsilon = 1e-5};
  DecoderPlan plan = decoder_plan(config, {"mixtral", "Mixtral"}, defaults);
  read_windows(plan, config, 0);
  MixturePlan mixture = mixture_plan(config, plan, RouterPlan::Kind::mixtral);
  mixture.type = plan.name.type("SparseMoeBlock");
  set_counts(mixture, config, config.size({"num_local_experts", "num_experts"}, 8),
             config.size({"num_experts_per_tok"}, 2));
  mixture.experts.inner = config.size({"intermediate_size"}, 14336);
  if (config.real({"router_jitter_noise"}, 0) > 0) config.reject("router_jitter_noise", "noise is not built");
  plan.make_feed_forward = feed_forward_of(mixture, {}, is_every);
  return llama_like_program(model, plan, defaults);
}

Program qwen3_moe_program(const ConfigModel& model) {
  const Config& config = model.config;
  const DecoderDefaults defaults{
      .vocabulary = 151936, .hidden = 2048, .inner = 6144, .layers = 24, .key_heads = 4, .positions = 32768};
  DecoderPlan plan = decoder_plan(config, {"qwen3_moe", "Qwen3Moe"}, defaults);
  if (config.flag({"use_sliding_window"}, false)) read_windows(plan, config, 4096);
  plan.attention.bias = plan.attention.output_bias = config.flag({"attention_bias"}, false);
  plan.attention.head_norm = AttentionPlan::HeadNorm::before_transposing;
  MixturePlan mixture = mixture_plan(config, plan, RouterPlan::Kind::qwen3);
  mixture.type = plan.name.type("SparseMoeBlock");
  mixture.router_first = false;
  set_counts(mixture, config, config.size({"num_experts", "num_local_experts"}, 128),
             config.size({"num_experts_per_tok"}, 8));
  mixture.experts.inner = config.size({"moe_intermediate_size"}, 768);
  mixture.router.normalized = config.flag({"norm_topk_prob"}, false);
  add_gated_mlp(plan, config, defaults, false);
  const int64_t step = config.size({"decoder_sparse_step"}, 1);
  const std::vector<int64_t> dense = config.integers("mlp_only_layers");
  plan.make_feed_forward = feed_forward_of(mixture, plan.make_feed_forward, [=](int64_t layer) {
    return std::ranges::find(dense, layer) == dense.end() && (layer + 1) % step == 0;
  });
  return llama_like_program(model, plan, defaults);
}

Program gpt_oss_program(const ConfigModel& model) {
  const Config& config = model.config;
  const DecoderDefaults defaults{.vocabulary = 201088,
                                 .hidden = 2880,
                                 .inner = 2880,
                                 .layers = 36,
                                 .heads = 64,
                                 .key_heads = 8,
                                 .width = 64,
                                 .positions = 131072,
                                 .epsilon = 1e-5};
  DecoderPlan plan = decoder_plan(config, {"gpt_oss", "GptOss"}, defaults);
  plan.norm = RmsNorm::Kind::scaled_before;
  plan.rotary_doubled = false;
  plan.attention.bias = plan.attention.output_bias = config.flag({"attention_bias"}, true);
  plan.attention.sinks = true;
  read_windows(plan, config, 128, [](int64_t layer) { return layer % 2 == 0; });
  MixturePlan mixture = mixture_plan(config, plan, RouterPlan::Kind::gpt_oss);
  mixture.type = plan.name.type("MLP");
  mixture.router_name = "router";
  set_counts(mixture, config, config.size({"num_local_experts", "num_experts"}, 128),
             config.size({"num_experts_per_tok"}, 4));
  mixture.experts.inner = config.size({"intermediate_size"}, 2880);
  mixture.experts.input_first = true;
  plan.make_feed_forward = feed_forward_of(mixture, {}, is_every);
  return llama_like_program(model, plan, defaults);
}

Program deepseek_v2_program(const ConfigModel& model) { return deepseek_program(model, false); }
Program deepseek_v3_program(const ConfigModel& model) { return deepseek_program(model, true); }

}  // namespace metaprof::configs
