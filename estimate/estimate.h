#pragma once
// A model, on a device, with options, to what its steps cost. Nothing here prints: what a reader should know
// besides the figures comes back as notes.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "estimate/prepare/model.h"
#include "estimate/prepare/workspace_planners.h"
#include "estimate/results/profile.h"
#include "meta/platform/outside_allocator.h"
#include "meta/step/optimizers_in_turn.h"
#include "meta/step/options.h"
#include "meta/trace/trace.h"
#include "profiler/phases.h"

namespace metaprof {

class CompiledModel;

/// Which of the steps are dispatched. A step that leaves everything as it found it is followed by its like
/// (docs/explanation/search.md).
enum class StepsToRun : uint8_t {
  all,
  until_alike  ///< up to such a step
};

struct Estimate {
  Platform platform;
  RunOptions options;
  Trace trace;           ///< everything that the run did
  ProfileReport report;  ///< and what it cost: all steps, whichever were dispatched
  int repeated = 0;      ///< steps that are not in the trace: as its last one
  /// The events of the same steps with the optimizer's fused code, where parameters are so large that memory may run out:
  /// that is what helps first, and all else of these steps is the same. Empty: not made, as for StepsToRun::all.
  std::vector<Event> fused = {};
};

/// Runs the steps and reads everything from them. `compiled` runs the model under `--execution graph`; null: one is
/// made. Errors: as run_steps and CompiledModel; the options do not go together.
Estimate estimate(const Model& model, const RunOptions& options, WorkspacePlanners& planners,
                  CompiledModel* compiled = nullptr, StepsToRun steps = StepsToRun::all);
Estimate estimate(const Model& model, const RunOptions& options, StepsToRun steps = StepsToRun::all);

/// The steps alone: for who asks one thing of many runs. `workspaces` gets what libraries planned.
Trace run_model(const Program& program, const RunOptions& options, const Platform& platform,
                WorkspacePlanners& planners, WorkspaceSources& workspaces, CompiledModel* compiled = nullptr);

/// The steps with each of the optimizers in place of the options' own; nothing where they cannot take turns.
std::optional<StepsInTurn> run_in_turn(const Program& program, const RunOptions& options,
                                       const Platform& platform, std::span<const OptimizerChoice> optimizers,
                                       WorkspacePlanners& planners, WorkspaceSources& workspaces);

/// Memory of the device that the allocator cannot have: what --context says, else what was reported.
OutsideAllocator outside_of(const RunOptions& options, const Platform& platform);
/// What is left for the allocator, without the margin. Errors: the margin leaves nothing; neither is a size or
/// share.
Bytes available_memory(const RunOptions& options, const Platform& platform);
/// Of --margin, from 0 to 1.
double margin_of(const RunOptions& options);

/// The allocator's statistics alone. `memory`: what of the device's it can have, or no limit. `program`: that was run;
/// its source says what goes where memory runs out; null: not asked.
Phases replay_trace(const Trace& trace, const RunOptions& options, const Platform& platform, Bytes memory,
                    const Program* program = nullptr);

/// What a run asks of its device's allocator: steps that repeat the one before are not run.
Requests requests_of_run(const Program& program, const RunOptions& options, const Platform& platform,
                         WorkspacePlanners& planners, WorkspaceSources& workspaces);
Phases replay_requests(const Requests& requests, const RunOptions& options, const Platform& platform,
                       Bytes memory);

/// Whether these steps fit. `needed`: where memory runs out, what would be reserved without a limit.
Verdict verdict_of(const RunOptions& options, const Platform& platform, const Phases& phases,
                   std::optional<Bytes> needed);

/// No device has more memory than this.
Bytes unlimited_memory();

/// The tensors that a model is called with.
std::vector<InputRow> inputs_of(const Program& program);

/// What the device can do at best.
Rates rates_of(const Platform& platform, const std::map<std::string, std::string>& environment = {});

/// All options with the values that were used. Without the device, which reports name apart.
std::vector<std::pair<std::string, OptionValue>> option_values(const RunOptions& options);

}  // namespace metaprof
