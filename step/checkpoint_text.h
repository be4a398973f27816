#pragma once
// What --checkpoint says: which modules are computed again in backward, and what of them is kept.
//
//   model.layers.*                        each of these modules
//   model.layers.0..model.layers.3        these modules and what is between them, as one
//   model.layers.0..model.layers.3{model.layers.0..model.layers.1}     … with checkpoints inside it
//   model.layers.*{=mm:0,2 =_softmax}     … keeping the results of the first and third mm, and of all _softmax
//   model.layers.*{>host}                 … whose saved tensors wait in host memory; nothing is computed again

#include <string>
#include <vector>

#include "step/eager/recompute_region.h"

namespace metaprof {

/// One word of the text: modules, and what is said of them in braces.
struct CheckpointItem {
  std::string first;  ///< a path with shell wildcards within its segments; with `last` a path
  std::string last;   ///< the last of several modules in a row; empty: there is one
  std::vector<KeptCalls> kept;
  bool offload = false;
  std::vector<CheckpointItem> inside;
};

/// Errors, with the word and what is wrong with it.
std::vector<CheckpointItem> checkpoint_items(const std::string& text);

}  // namespace metaprof
