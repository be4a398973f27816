#pragma once
// Who runs a graph: an executor, as those see it that it is made for.

#include <vector>

#include "meta/session/session.h"
#include "meta/tensor/value.h"

namespace metaprof::ir {

class GraphRunner {
 public:
  virtual ~GraphRunner() = default;
  /// Runs the graph on its inputs.
  virtual std::vector<metaprof::Value> run(Session& session, std::vector<metaprof::Value> inputs) = 0;
};

}  // namespace metaprof::ir
