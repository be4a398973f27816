#pragma once
// Results that a selective checkpoint keeps (torch/utils/checkpoint.py, create_selective_checkpoint_contexts,
// PyTorch 2.11): calls below autograd are asked about one by one, those that operators make of others
// included, those that kernels make not.

#include <deque>
#include <unordered_map>

#include "meta/autograd/graph/state.h"
#include "meta/autograd/modes/checkpoint_policy.h"

namespace metaprof {

struct SelectiveCache {
  struct Kept {
    ResultList results;
    SmallVector<uint32_t, 4> versions;  ///< of the tensors among them
  };
  CheckpointPolicyFunction policy;
  bool again = false;                                      ///< the region is being computed again
  std::unordered_map<uint32_t, std::deque<Kept>> results;  ///< by operator, in the order of calls
};

/// While it lives, calls keep their results in the cache or, where the region is computed again, take them
/// from there. A null cache: nothing happens.
class SelectiveScope {
 public:
  SelectiveScope(Session& session, SelectiveCache* cache, bool again);
  ~SelectiveScope();
  SelectiveScope(const SelectiveScope&) = delete;

 private:
  Session& session_;
  SelectiveCache* const cache_;
  SelectiveCache* const outer_;
  const LayerFunction layer_;
  const bool again_before_;
};

}  // namespace metaprof
