#pragma once
// The modules of a model as a planner sees them: a tree of few kinds of modules, each with what one of them
// would save.

#include <string>
#include <vector>

#include "planner/plan_series.h"

namespace metaprof {

/// Modules that are alike: the same calls on the same shapes, so the same costs.
struct ModuleClass {
  std::string type;    ///< "transformers.models.gpt2.modeling_gpt2.GPT2Block"
  int64_t saved = 0;   ///< bytes that one of them does not keep when it is computed again; 0: no candidate
  RecomputeCost cost;  ///< of computing one of them again
  struct Part {
    int32_t of = 0;  ///< index of a class, less than this one's
    int32_t count = 0;
  };
  std::vector<Part> parts;  ///< the modules directly inside one of them
};

struct Module {
  std::string path;
  int32_t of = 0;               ///< index of its class
  std::vector<int32_t> inside;  ///< modules directly inside it, in the order of their first forward
};

struct ModuleTree {
  std::vector<ModuleClass> classes;  ///< parts before wholes
  std::vector<Module> modules;       ///< outer ones before inner ones; the first is the model
};

}  // namespace metaprof
