#pragma once
// What planners of activation checkpointing ask of a model: its chain of stages, its modules with what they
// keep, its storages with their lives. Of the first forward and the first backward.

#include <string>
#include <vector>

#include "profiler/nodes/nodes.h"

namespace metaprof {

/// A stretch of nodes between two moments at which a single tensor that needs a gradient goes from what was
/// before to what comes after. Tensors that need none (masks, positions, labels) do not count.
struct ChainStage {
  int32_t first = 0, last = 0;  ///< nodes
  std::string name;             ///< of its last node
  Bytes x;                      ///< of the tensor that it hands on, whether anybody saves it or not
  Bytes xbar;                   ///< what it keeps when it is run for backward, with x
  Bytes ftmp;                   ///< most that its forward needs beyond xbar
  Bytes btmp;       ///< most that its backward needs beyond xbar, the gradients of its result and its
                    ///< input, and those of parameters
  Bytes gradients;  ///< of parameters, born in its backward
  Bytes parameters;
  double ftime = 0, btime = 0;  ///< seconds
};

struct Chain {
  Bytes input;  ///< the model's inputs
  std::vector<ChainStage> stages;
};

/// Figures of a module, those inside it included.
struct ModulePlan {
  std::string path;
  bool is_leaf = false;  ///< it has no modules inside
  Bytes parameters, trainable;
  Bytes gradients_before;   ///< of parameters, alive when its backward begins
  Bytes kept;               ///< by its forward, without its inputs and outputs
  Bytes kept_after;         ///< by everything up to the end of its forward
  Bytes at_peak;            ///< activations alive at the fullest moment of its backward
  Bytes gradients_at_peak;  ///< of activations, at that moment, beyond those at its beginning
  Bytes inputs, outputs;
  double forward_seconds = 0, backward_seconds = 0;
  std::vector<int32_t> nodes;  ///< within it
};

struct ModulePlans {
  std::vector<ModulePlan> modules;  ///< in the order of their first forward, the outer first
  std::vector<std::string> forward_pre, forward_post, backward_pre, backward_post;  ///< paths
};

/// A storage of the device.
struct StorageLife {
  uint32_t storage = 0;
  Bytes bytes;
  Category category = Category::activation;
  size_t begin = 0, end = 0;  ///< events of the trace in which it is alive; `end` is the first after it
  int32_t born_in = kNoNode;  ///< node of the first forward or backward
};

struct PlanInput {
  NodeProfile nodes;  ///< of operators as the program calls them
  Chain chain;
  ModulePlans modules;
  std::vector<StorageLife> storages;  ///< in the order of birth
  Bytes parameters, trainable;
};

PlanInput plan_input(const Trace& trace, Device device, const Rates& rates);

}  // namespace metaprof
