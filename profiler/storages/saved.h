#pragma once
// What the first forward keeps for backward: the storages that the autograd graph holds when that forward
// ends, without parameters and buffers. Inputs that are kept count.
//
// A storage that several nodes keep counts once, under the node at which a walk of the graph from the loss
// meets it first. The walk is a stack: the last pushed node is visited next, and a visited node pushes its
// next nodes in order.

#include <string>
#include <vector>

#include "meta/trace/trace.h"

namespace metaprof {

struct SavedStorage {
  uint32_t storage = 0;
  uint32_t node = 0;  ///< index into Trace::nodes
  Bytes bytes;
};

struct SavedByNode {
  std::string node;  ///< "AddmmBackward0"
  int64_t count = 0;
  Bytes bytes;
};

struct Saved {
  int64_t count = 0;
  Bytes bytes;
  std::vector<SavedByNode> by_node;  ///< by name
  /// Alive besides when that forward ends, and no state, input or workspace: outputs, inputs of checkpointed regions.
  int64_t besides_count = 0;
  Bytes besides_bytes;
  std::vector<SavedStorage> storages;  ///< in the order in which the walk meets them
};

/// Every storage of every node that the walk meets, so that one which several nodes keep comes several times.
std::vector<SavedStorage> held_by_first_forward(const Trace& trace, Device device);

/// Nothing if the first forward has no loss with a node (no-grad, inference).
Saved saved_by_first_forward(const Trace& trace, Device device);

}  // namespace metaprof
