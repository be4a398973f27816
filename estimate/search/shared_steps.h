#pragma once
// The steps of one run, for all who differ from it only in what comes after dispatch: the optimizer, the device's
// memory, the allocator's settings, and the device itself, as long as it answers as the one that was asked.

#include <map>
#include <optional>
#include <vector>

#include "estimate/estimate.h"
#include "meta/session/questions.h"

namespace metaprof {

class SharedSteps {
 public:
  /// Runs `program` on the device of `run` with each of the optimizers; nothing where they cannot take turns. Errors: as
  /// run_steps.
  static std::optional<SharedSteps> run(const Program& program, const RunOptions& run,
                                        const Platform& platform, std::span<const OptimizerChoice> optimizers,
                                        WorkspacePlanners& planners);

  /// Whether a run on this platform, otherwise with the same options, has the same steps.
  bool hold_on(const Platform& platform) const;

  struct Memory {
    AllocatorNumbers peak;           ///< up to where memory runs out
    AllocatorNumbers without_limit;  ///< of all steps, on a device that has more memory than any has
    bool runs_out = false;
    Verdict verdict;
  };
  /// With the memory and the allocator of `run`. Errors: as parse_alloc_conf.
  Memory memory(const RunOptions& run, const Platform& platform);
  /// The same of steps that are known by what they ask for.
  static Memory memory(const Requests& requests, const RunOptions& run, const Platform& platform);

  Bytes parameter_bytes() const { return parameters_; }
  Bytes saved_bytes() const { return saved_; }
  const ByPhase<Flops>& flops() const { return flops_; }
  const WorkspaceSources& workspaces() const { return workspaces_; }

 private:
  // What a platform answers to Questions::sizes.
  using Sizes = std::vector<int64_t>;
  // What some optimizers ask for.
  struct Asked {
    Requests requests;
    std::map<Sizes, std::optional<Phases>> without_limit;  // by the allocator's usual settings
  };

  static Memory memory(const Requests& requests, std::optional<Phases>& without_limit, const RunOptions& run,
                       const Platform& platform);
  void add(const OptimizerChoice& optimizer, Requests requests);
  void read(const Trace& trace);
  void count(const Trace& trace);
  Asked& asked_by(const OptimizerChoice& optimizer);
  Sizes sizes_on(const Platform& platform) const;

  Platform platform_;
  std::map<std::string, std::string> environment_;
  Questions questions_;
  std::vector<Asked> asked_;
  std::vector<std::pair<OptimizerChoice, size_t>> optimizers_;  // with the place in asked_
  Bytes parameters_, saved_;
  ByPhase<Flops> flops_;
  WorkspaceSources workspaces_;
};

}  // namespace metaprof
