// Operators that libtorch 1.13 lacks, computed with operators that it has.

#include <unordered_map>

#include "backends/cpu/libtorch_call.h"

namespace metaprof {

Recipe recipe_for(std::string_view name) {
  static const std::unordered_map<std::string_view, Recipe> recipes = {};
  const auto found = recipes.find(name);
  return found == recipes.end() ? nullptr : found->second;
}

}  // namespace metaprof
