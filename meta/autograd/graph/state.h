#pragma once
// What autograd keeps per session.

#include <functional>

#include "meta/session/call.h"

namespace metaprof {

class Node;

/// A saved tensor's pack and unpack functions; what `pack` returns is kept instead of the tensor.
struct SavedTensorHooks {
  std::function<Ref<Counted>(const Tensor&)> pack;
  std::function<Tensor(Counted&)> unpack;
};

struct GraphTask;
struct SelectiveCache;

struct AutogradState final : LayerState {
  std::vector<Node*> graveyard;  ///< nodes whose last owner is gone, while one of them is being destroyed
  bool destroying = false;
  std::vector<std::shared_ptr<SavedTensorHooks>> saved_tensor_hooks;
  std::string saved_tensor_hooks_disabled;  ///< why; empty: they may be used
  GraphTask* running_task = nullptr;        ///< the backward that is running
  uint32_t running_number = 0;              ///< its number
  uint32_t task_count = 0;                  ///< how many backwards there were
  uint32_t reentrant_depth = 0;
  /// Number of the next node that is made in a backward on the device's thread: each thread of the framework counts its own
  /// (at::sequence_number is thread-local), so nodes of a gradient's graph stand where their number falls among the others.
  uint64_t device_thread_sequence = 0;
  bool trim_rows = true;    ///< tests turn it off to see what trimming saves
  uint64_t saved_read = 0;  ///< bit i: a formula has looked at saved tensor i of its node
  bool anomaly = false;     ///< an error in backward names the forward call; results are checked for NaN …
  bool anomaly_checks_nan = true;       ///< … unless this is off
  SelectiveCache* selective = nullptr;  ///< of the selective checkpoint that is being run (checkpoint.cpp)
};

AutogradState& autograd_state(Session& session);

/// Gives a session its layers (autocast, autograd, record, kernel) and autograd's state.
void install_autograd(Session& session);

}  // namespace metaprof
