#pragma once
// An epoch of batches of different lengths: the allocator's state goes on from step to step, as it does in training, so that
// reserved memory and fragmentation are those of step N. Batches of the same shape are run once.

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "estimate/epoch/batches.h"
#include "estimate/estimate.h"
#include "estimate/prepare/model.h"
#include "estimate/prepare/workspace_planners.h"
#include "estimate/results/epoch.h"
#include "step/options.h"

namespace metaprof {

/// The steps of one model with one set of options, for batches of any shape.
class Epoch {
 public:
  /// `model`, `planners` must outlive it. Errors: the program has steps or inputs of its own; as platform_of.
  Epoch(const Model& model, const RunOptions& options, WorkspacePlanners& planners);
  ~Epoch();

  /// Runs batches, `--accumulate` of them in a step, on an allocator with `memory` of the device's. `conf`: in place of
  /// --alloc-conf. Errors: as run_steps; the model does not take such inputs.
  EpochRun play(std::span<const BatchShape> batches, Bytes memory, int64_t empty_cache_every = 0,
                const std::string* conf = nullptr);

  /// Nothing: memory runs out. Where the largest batch alone takes more, the others are not run.
  std::optional<EpochRun> run_if_it_fits(std::span<const BatchShape> batches, Bytes memory,
                                         int64_t empty_cache_every);
  /// What the model is called with for such a batch.
  std::vector<InputRow> inputs(const BatchShape& batch) const;

  /// Samples in a batch: --batch, or those of the model.
  int64_t samples() const;
  /// What the allocator can have.
  Bytes memory() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Of these, the batch with the most tokens; of equals, the longest.
BatchShape largest_of(std::span<const BatchShape> batches);

/// Whether what else one may try is run, too.
enum class EpochChanges : uint8_t { left_out, tried };

/// Errors: as Epoch and batches_of.
EpochReport run_epoch(const Model& model, const RunOptions& options, const EpochOptions& asked,
                      WorkspacePlanners& planners, EpochChanges changes);

/// The estimate of the batch with the most tokens, and the whole epoch in its report. Errors: as run_epoch.
Estimate estimate_epoch(const Model& model, const RunOptions& options, const EpochOptions& asked,
                        WorkspacePlanners& planners, StepsToRun steps,
                        EpochChanges changes = EpochChanges::left_out);

}  // namespace metaprof
