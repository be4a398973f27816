#pragma once
// The steps of one size of inputs, for all rows of a search that dispatch the same: cards differ in their memory, and mostly
// in nothing that a step asks for.

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "estimate/results/input_row.h"
#include "estimate/search/shared_steps.h"

namespace metaprof {

/// Several threads may ask.
class SizedSteps {
 public:
  /// Both must outlive it.
  SizedSteps(const Model& model, WorkspacePlanners& planners) : model_(model), planners_(planners) {}

  struct Found {
    SharedSteps::Memory memory;
    std::vector<InputRow> inputs;  ///< that were run
    WorkspaceSources workspaces;   ///< what libraries planned
  };
  /// The model's steps with the options of `run`, dispatched anew where no card before has the same. Errors: as run_steps.
  Found find(const RunOptions& run, const Platform& platform);

 private:
  struct Entry {
    std::mutex busy;
    std::deque<SharedSteps> known;
    std::vector<InputRow> inputs;
  };
  Entry& entry_of(const RunOptions& run);
  Found alone(const Program& program, const RunOptions& run, const Platform& platform);

  const Model& model_;
  WorkspacePlanners& planners_;
  std::mutex looking_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;  // by the options of dispatch
};

}  // namespace metaprof
