#pragma once
// A model with the inputs that runs ask for: made once for all runs that ask for the same.

#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "estimate/prepare/model.h"

namespace metaprof {

/// Keeps the last few. Several threads may use one object; who asks for what another is making waits for it.
class InputPrograms {
 public:
  /// `model` outlives this object.
  explicit InputPrograms(const Model& model) : model_(model) {}

  /// Errors: as with_inputs.
  std::shared_ptr<const Program> of(const RunOptions& run);

 private:
  using Made = std::shared_future<std::shared_ptr<const Program>>;

  const Model& model_;
  std::mutex mutex_;
  std::deque<std::pair<std::string, Made>> last_;  // by the inputs
};

}  // namespace metaprof
