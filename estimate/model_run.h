#pragma once
// The second stage of an estimate: the steps are run, and their events are a Trace.

#include <optional>
#include <span>
#include <vector>

#include "estimate/prepare/prepare.h"
#include "estimate/prepare/workspace_planners.h"
#include "estimate/results/profile.h"
#include "meta/trace/trace.h"
#include "profiler/allocator/requests.h"
#include "program/program.h"
#include "step/optimizers_in_turn.h"
#include "step/options.h"

namespace metaprof {

class CompiledModel;

/// Which of the steps are dispatched. A step that leaves everything as it found it is followed by its like
/// (docs/explanation/search.md).
enum class StepsToRun : uint8_t {
  all,
  until_alike  ///< up to such a step
};

/// A run of a program. What is `repeated` is not in the trace: steps as its last one.
struct ModelRun {
  Trace trace;
  int repeated = 0;
  /// The events of the same steps with the optimizer's fused code, where parameters are so large that memory may run out:
  /// that is what helps first, and all else of these steps is the same. Empty: not made, as for StepsToRun::all.
  PlainVector<Event> fused = {};
  /// Of gradients of inputs (--grad): the first step with all gradients, those that nobody asked for, too.
  std::optional<Trace> all_gradients = {};
  WorkspaceSources workspaces = {};  ///< what libraries planned
};

/// `compiled` runs the model under `--execution graph`; null: one is made. Errors: as run_steps and CompiledModel; the
/// options do not go together.
ModelRun run(const PreparedRun& prepared, WorkspacePlanners& planners, CompiledModel* compiled,
             StepsToRun steps);

/// The steps alone: for who asks one thing of many runs. `workspaces` gets what libraries planned.
Trace run_model(const Program& program, const RunOptions& options, const Platform& platform,
                WorkspacePlanners& planners, WorkspaceSources& workspaces, CompiledModel* compiled = nullptr);

/// The steps up to one that leaves everything as it found it.
ModelRun run_until_alike(const Program& program, const RunOptions& options, const Platform& platform,
                         WorkspacePlanners& planners, WorkspaceSources& workspaces);

/// The steps with each of the optimizers in place of the options' own; nothing where they cannot take turns.
std::optional<StepsInTurn> run_in_turn(const Program& program, const RunOptions& options,
                                       const Platform& platform, std::span<const OptimizerChoice> optimizers,
                                       WorkspacePlanners& planners, WorkspaceSources& workspaces);

/// What a run asks of its device's allocator: steps that repeat the one before are not run.
Requests requests_of_run(const Program& program, const RunOptions& options, const Platform& platform,
                         WorkspacePlanners& planners, WorkspaceSources& workspaces);

}  // namespace metaprof
