#pragma once
// A part of the model that runs without gradients in forward, and again, with them, in backward.

#include <functional>
#include <vector>

#include "meta/autograd/graph/node.h"
#include "meta/autograd/graph/saved_tensor.h"
#include "meta/autograd/modes/autocast.h"
#include "meta/session/session.h"

namespace metaprof {

/// The part as a function. It must be repeatable: it is called in forward and again in backward.
using RegionBody = std::function<std::vector<Value>(const std::vector<Value>&)>;

/// What surrounded the part in forward and is restored when it runs again.
struct Surroundings {
  Modes modes;
  uint32_t module;
};

/// As long as it lives, calls are those of a part that runs again.
class AgainAsBefore {
 public:
  AgainAsBefore(Session& session, const Surroundings& before);

 private:
  AutocastRegion autocast_;
  Scoped<bool> grad_, above_;
  Scoped<Phase> phase_;
  Scoped<Category> category_;
  Scoped<uint32_t> module_;
};

/// The node of a custom function that is such a part: it saves the part's inputs.
class PartFunction : public Node {
 public:
  PartFunction(Session& session, std::string_view name, RegionBody body, const std::vector<Value>& inputs);
  void release_variables() override;

 protected:
  /// What was saved: tensors without history, which require gradients as they did.
  std::vector<Value> unpack();

  RegionBody body_;
  Surroundings before_;

 private:
  std::vector<Value> plain_;
  std::vector<SavedTensor> saved_;
  std::vector<char> requires_grad_;
};

/// The forward of a custom function: runs the part without gradients, and makes what it gives outputs of `node`, whose
/// edges are there. Returns them.
std::vector<Value> run_as_function(Session& session, const Ref<Node>& node, const RegionBody& body,
                                   const std::vector<Value>& inputs);

}  // namespace metaprof
