#pragma once
// Equal layers as one: "model.layers.3.mlp.up" is the layer "3" of "model.layers.*.mlp".

#include <string>
#include <string_view>
#include <vector>

namespace metaprof {

struct FoldedModule {
  std::string path;   ///< "model.layers.*.mlp"
  std::string layer;  ///< "3."; empty: the path has no number
};
/// What stands more than one part behind the last number is inside of that. A path without numbers has as many parts
/// as fit a line.
FoldedModule folded_module(std::string_view path);

/// "12 × model.layers.*.attn, model.head": each folded path once, with the number of its modules where it has several.
std::string folded_modules(const std::vector<std::string>& paths);

}  // namespace metaprof
