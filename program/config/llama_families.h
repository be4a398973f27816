#pragma once
// What families whose layers are llama's read alike.

#include "program/config/families.h"
#include "program/config/layers/decoder.h"

namespace metaprof::configs {

/// Defaults of a family's configuration class.
struct DecoderDefaults {
  int64_t vocabulary = 32000, hidden = 4096, inner = 11008, layers = 32, heads = 32;
  int64_t key_heads = 0;  ///< 0: as many as heads
  int64_t width = 0;      ///< of a head; 0: hidden / heads
  int64_t positions = 2048;
  double epsilon = 1e-6;
  const char* activation = "silu";
  bool tied = false;
};

/// The plan without a feed-forward part. Errors: values that no model has.
DecoderPlan decoder_plan(const Config& config, FamilyName name, const DecoderDefaults& defaults);

/// Adds gated feed-forward parts to all layers.
void add_gated_mlp(DecoderPlan& plan, const Config& config, const DecoderDefaults& defaults, bool bias);

/// Which layers see the nearest keys alone. `usual`: the window where the configuration has none, 0 if there is none.
/// `slides`: of layers, where `layer_types` is missing; null: all slide. Errors: layer_types is of another number of
/// layers or has other words; layers slide without a window.
void read_windows(DecoderPlan& plan, const Config& config, int64_t usual,
                  const std::function<bool(int64_t)>& slides = {});

/// What all gemmas have in common.
void make_gemma(DecoderPlan& plan, const Config& config);
/// query_pre_attn_scalar as a factor of scores.
double scale_of_scalar(const Config& config);

/// The step of the language model.
Program llama_like_program(const ConfigModel& model, const DecoderPlan& plan,
                           const DecoderDefaults& defaults);

}  // namespace metaprof::configs
