#pragma once
// What saved tensors are packed into instead of being kept (torch.autograd.graph, PyTorch 2.11).

#include "meta/autograd/graph/state.h"

namespace metaprof {

/// Tensors that are saved during its life are packed with these hooks; the innermost scope counts. An Error
/// if hooks are disabled.
class SavedTensorHooksScope {
 public:
  SavedTensorHooksScope(Session& session, std::shared_ptr<SavedTensorHooks> hooks);
  ~SavedTensorHooksScope();
  SavedTensorHooksScope(const SavedTensorHooksScope&) = delete;

 private:
  Session& session_;
};

/// During its life such a scope is an Error with this reason; it is one itself inside such a scope.
class SavedTensorHooksDisabled {
 public:
  SavedTensorHooksDisabled(Session& session, std::string reason);
  ~SavedTensorHooksDisabled();
  SavedTensorHooksDisabled(const SavedTensorHooksDisabled&) = delete;

 private:
  Session& session_;
  std::string before_;
};

/// Saved tensors wait in host memory (save_on_cpu).
std::shared_ptr<SavedTensorHooks> save_on_host(Session& session, bool pinned = false);

/// Saved floating tensors are kept as this type and made again from it; others as they are.
std::shared_ptr<SavedTensorHooks> pack_as(Session& session, DType dtype);

}  // namespace metaprof
