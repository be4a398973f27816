#pragma once
// Decoders as llama's: an embedding, layers of attention with rotary positions and a feed-forward part, a norm
// and a head. The families differ in parts of the layers; a DecoderPlan says which parts.

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "program/config/layers/blocks.h"
#include "program/config/layers/config.h"
#include "program/config/layers/key_cache.h"

namespace metaprof::configs {

/// Hidden states, positions and mask (undefined: every key before a query is seen) → hidden states.
using AttentionPart = std::function<Tensor(Tensor, Rotation, Tensor)>;

struct AttentionPlan {
  enum class HeadNorm : uint8_t {
    none,
    before_transposing,  ///< of each head, in [batch, positions, heads, width]: qwen3
    after_transposing,   ///< of each head, in [batch, heads, positions, width]: gemma3
    whole_projection     ///< over all heads together: olmo2
  };
  int64_t hidden = 0, heads = 0, key_heads = 0, width = 0;
  bool bias = false, output_bias = false;
  bool fused = false;  ///< one projection for queries, keys and values: phi3
  bool sinks = false;  ///< a learned logit per head beside the keys: gpt_oss
  HeadNorm head_norm = HeadNorm::none;
  double scale = 1, dropout = 0;
  double residual_dropout = -1;  ///< of the result; negative: there is none
};

struct DecoderPlan {
  FamilyName name;
  int64_t vocabulary = 0, hidden = 0, layers = 0;
  int64_t padding = -1;                    ///< index of the embedding's row without gradient; -1: none
  int64_t rotary_width = 0;                ///< how much of a head is turned
  std::vector<std::string> tables = {""};  ///< of rotary positions
  std::vector<size_t> table_of_layer;      ///< empty: the only one
  int64_t window = 0;  ///< keys that sliding attention sees; 0: all attention sees all keys before a query
  std::vector<bool> slides;  ///< per layer; empty: all layers, if there is a window
  bool rotary_32bits = false, rotary_doubled = true, rotary_complex = false;
  bool tied = false;  ///< the head's weight is the embedding's
  bool scales_embedding = false;
  double logit_cap = 0;                                  ///< 0: none
  double embedding_dropout = -1, residual_dropout = -1;  ///< negative: there is none
  bool norm_before = true;  ///< a norm before attention and before the feed-forward part
  bool norm_after = false;  ///< … behind them
  bool layer_norm = false;  ///< norms take off the mean
  RmsNorm::Kind norm = RmsNorm::Kind::scaled_after;
  double epsilon = 1e-6;
  AttentionPlan attention;
  /// Parts of a layer, by its index. Without `make_attention` it is that of the plan.
  std::function<AttentionPart(const Place&, const DecoderPlan&, int64_t)> make_attention;
  std::function<AnyPart(const Place&, const DecoderPlan&, int64_t)> make_feed_forward;

  /// Null: there is none. `cached`: what each layer holds of a token.
  std::shared_ptr<KeyCache> cache;
  CachedWidths cached;
  bool last_logits = false;  ///< of the last position alone, as `generate` asks for those of a prompt
  /// All layers' tensors, as the calls before have left them, in the type of `like`.
  void fill_cache(const nn::AnyModule& module, const Tensor& like, int64_t batch) const;

  bool has_window(int64_t layer) const {
    return window > 0 && (slides.empty() || slides[static_cast<size_t>(layer)]);
  }
  /// A norm of one of the layers.
  AnyPart norm_part(const Place& place) const;
};

/// down(activation(gate(x)) · up(x))
struct GatedMlp : nn::Module<GatedMlp> {
  GatedMlp(const Place& place, std::string type, int64_t hidden, int64_t inner, bool bias,
           const std::string& activation, const std::string& where);
  Tensor forward(Tensor x);
  nn::Linear gate_proj, up_proj, down_proj;
  Activation act_fn;
};

struct DecoderLayer : nn::Module<DecoderLayer> {
  DecoderLayer(const Place& place, const DecoderPlan& plan, int64_t index);
  Tensor forward(Tensor hidden, Rotation rotation, Tensor mask);
  AttentionPart self_attn;
  AnyPart mlp, input_norm, attention_norm, feed_forward_norm, output_norm, attention_dropout, mlp_dropout;
};

/// Token ids i64[batch, positions] → [batch, positions, hidden]. Without `embedding` it has an own one.
struct Decoder : nn::Module<Decoder> {
  /// `type`: of the class, behind the family's prefix.
  Decoder(const Place& place, const DecoderPlan& plan, std::string_view type = "Model");
  Tensor forward(Tensor ids);
  /// From embedded tokens on, with those masks.
  Tensor run(Tensor embedded, const std::pair<Tensor, Tensor>& masks);
  Tensor run(Tensor embedded);
  Tensor embed(Tensor ids);
  /// The masks of layers without and with a window; undefined: `is_causal` says it.
  std::pair<Tensor, Tensor> masks(const Tensor& hidden) const;

  DecoderPlan plan;
  nn::Embedding embed_tokens;
  Tensor embed_scale;
  nn::ModuleList<DecoderLayer> layers;
  AnyPart norm;
  RotaryEmbedding rotary_emb;
};

/// Token ids → logits [batch, positions, vocabulary].
struct CausalDecoder : nn::Module<CausalDecoder> {
  CausalDecoder(const Place& place, const DecoderPlan& plan);
  Tensor forward(Tensor ids);
  Decoder model;
  nn::Linear lm_head;
  double logit_cap;
  bool last_logits;
};

}  // namespace metaprof::configs
