#pragma once
// Trees of modules for tests of plans.

#include <string>

#include "estimate/plan/strategies/module_tree.h"

namespace metaprof {

/// A module of the class `of` with those inside it, each a module of its own; gives its index.
inline int32_t add_module(ModuleTree& tree, int32_t of, const std::string& path) {
  const auto index = static_cast<int32_t>(tree.modules.size());
  tree.modules.push_back({.path = path, .of = of, .inside = {}});
  for (const ModuleClass::Part& part : tree.classes[size_t(of)].parts)
    for (int i = 0; i < part.count; ++i) {
      const int32_t inner =
          add_module(tree, part.of, path + "." + std::to_string(part.of) + std::to_string(i));
      tree.modules[size_t(index)].inside.push_back(inner);
    }
  return index;
}

}  // namespace metaprof
