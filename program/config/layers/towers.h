#pragma once
// Encoders of images and of texts as clip and siglip have them, and other models with them. Names and defaults:
// transformers 5.17, models/clip, models/siglip.

#include "program/config/layers/blocks.h"
#include "program/config/layers/config.h"

namespace metaprof::configs {

struct TowerPlan {
  FamilyName name;
  int64_t hidden, inner, layers, heads;
  double epsilon, dropout;
  std::string activation, where;
  bool causal;

  int64_t width() const { return hidden / heads; }
};

/// `hidden`, `heads`: defaults. The family's module decides the others. Errors: values that no model has.
TowerPlan tower_plan(const Config& config, FamilyName name, int64_t hidden, int64_t heads, bool causal);

/// The layers: [batch, positions, hidden] → the same.
AnyPart tower(const Place& place, const TowerPlan& plan);

struct ImagePlan {
  TowerPlan tower;
  int64_t image, patch, channels;
  bool class_token;  ///< clip
  bool head;         ///< attention that pools: siglip

  int64_t patches() const { return (image / patch) * (image / patch); }
};

/// `patch`: the default of patch_size.
ImagePlan image_plan(const Config& vision, const FamilyName& name, int64_t patch);

/// Pixels [batch, channels, image, image] → the features of each image [batch, hidden]; without a head and a class
/// token those of all patches, [batch, patches, hidden].
AnyPart image_model(const Place& place, const ImagePlan& plan);

}  // namespace metaprof::configs
