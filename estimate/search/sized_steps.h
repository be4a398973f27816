#pragma once
// The steps of one size of inputs, for all rows of a search that dispatch the same: cards differ in their memory, and mostly
// in nothing that a step asks for.

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "estimate/search/shared_steps.h"

namespace metaprof {

/// Several threads may ask.
class SizedSteps {
 public:
  explicit SizedSteps(WorkspacePlanners& planners) : planners_(planners) {}

  /// Memory of `program`'s steps with the options of `run`, dispatched anew where no card before has the same. Nothing: they
  /// cannot be shared. `workspaces` gets what libraries planned. Errors: as run_steps.
  std::optional<SharedSteps::Memory> memory(const Program& program, const RunOptions& run,
                                            const Platform& platform, WorkspaceSources& workspaces);

 private:
  struct Entry {
    std::mutex busy;
    std::deque<SharedSteps> known;
  };
  Entry& entry_of(const RunOptions& run);

  WorkspacePlanners& planners_;
  std::mutex looking_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;  // by the options of dispatch
};

}  // namespace metaprof
