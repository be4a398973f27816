#pragma once
// A model compiled as a graph: what runs it in place of the interpreter of programs under `--execution graph`.

#include <memory>
#include <set>
#include <string>

#include "estimate/results/execution.h"
#include "meta/platform/platform.h"
#include "step/model_runner.h"
#include "step/options.h"

namespace metaprof {

namespace ir {
class GraphExecutor;
struct ExecutorCounters;
}  // namespace ir

struct CompiledModelOptions {
  std::set<std::string, std::less<>> disabled;  ///< passes that are left out
  bool keep_texts = false;                      ///< the graph before and after every pass
  bool optimise = true;                         ///< false: the graph is run as it is
};

class CompiledModel {
 public:
  /// What is given must outlive the object. Errors: no pass has such a name; options that graphs do not take.
  CompiledModel(const RunOptions& run, const Platform& platform, const CompiledModelOptions& options = {});
  ~CompiledModel();
  CompiledModel(const CompiledModel&) = delete;

  /// For run_steps; the object must outlive the run. Its errors: what is not compiled (step/compiled/ir/from_program.h).
  MakeModelRunner runner();

  /// Of what ran so far. `followed`: of the program.
  GraphScope scope(size_t followed) const;

  /// Null until a runner was made.
  const ir::GraphExecutor* executor() const { return executor_.get(); }
  const ir::ExecutorCounters& counters() const { return *counters_; }

 private:
  const RunOptions& run_;
  const Platform& platform_;
  const CompiledModelOptions options_;
  std::unique_ptr<ir::ExecutorCounters> counters_;
  std::unique_ptr<ir::GraphExecutor> executor_;
};

/// Errors: no pass has such a name; the message lists those there are.
void check_passes(const std::vector<std::string>& names);

}  // namespace metaprof
