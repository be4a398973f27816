#pragma once
// The modules of a model as a planner sees them: a tree of few kinds of modules, each with what one of them
// would save.

#include <string>
#include <vector>

#include "estimate/plan/strategies/plan_series.h"

namespace metaprof {

/// A call of an operator that is made when its module is computed again, and whose results could be kept.
struct OperatorCall {
  std::string op;      ///< without its namespace: "mm"
  int32_t number = 0;  ///< of that operator's calls in one module, from 0
  int64_t bytes = 0;   ///< of its results
  RecomputeCost cost;  ///< of making it again
};

/// Modules that are alike: the same calls on the same shapes, so the same costs.
struct ModuleClass {
  std::string type;    ///< "transformers.models.gpt2.modeling_gpt2.GPT2Block"
  int64_t saved = 0;   ///< bytes that one of them does not keep when it is computed again; 0: no candidate
  int64_t bare = 0;    ///< bytes that it keeps all the same: its input
  RecomputeCost cost;  ///< of computing one of them again
  std::vector<OperatorCall> calls = {};  ///< of which `cost` is the sum, as far as they can be told apart
  struct Part {
    int32_t of = 0;  ///< index of a class, less than this one's
    int32_t count = 0;
  };
  std::vector<Part> parts = {};  ///< the modules directly inside one of them
};

struct Module {
  std::string path;
  int32_t of = 0;               ///< index of its class
  std::vector<int32_t> inside;  ///< modules directly inside it, in the order of their first forward
  /// The list of modules that hand on one tensor each to the next, of which this is one; -1: none. Those of one
  /// list that follow each other can be computed again as one.
  int32_t list = -1;
};

struct ModuleTree {
  std::vector<ModuleClass> classes;  ///< parts before wholes
  std::vector<Module> modules;       ///< outer ones before inner ones; the first is the model
};

}  // namespace metaprof
