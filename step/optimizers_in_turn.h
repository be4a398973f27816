#pragma once
// One run for several optimizers. What the forward and the backward do does not depend on who updates the parameters:
// they are run once, and between them each optimizer makes its update of the same gradients.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meta/platform/platform.h"
#include "meta/trace/trace.h"
#include "program/program.h"
#include "step/options.h"

namespace metaprof {

struct OptimizerChoice {
  std::string name;  ///< one of known_optimizers()
  OptimizerImpl implementation = OptimizerImpl::standard;

  friend bool operator==(const OptimizerChoice&, const OptimizerChoice&) = default;
};

struct StepsInTurn {
  /// Storages, calls and nodes of all; its events are those of the first optimizer.
  Trace trace;
  /// By optimizer: what a run with it alone does. Storages have other numbers than there. The first one's are in `trace`.
  std::vector<PlainVector<Event>> events;
  /// How many of the steps are in the events: those that are left out repeat the last one.
  int steps = 0;
};

/// Whether the optimizers can take turns: the program has no steps of its own, the step trains, and runs eagerly.
bool can_take_turns(const Program& program, const StepOptions& options);

/// Runs the steps of `options` with each of `optimizers` in place of its own. Nothing where an optimizer leaves
/// something behind that the next forward would find (a library's workspace). Errors: as run_steps.
std::optional<StepsInTurn> run_in_turn(const Program& program, const Platform& platform,
                                       const StepOptions& options,
                                       std::span<const OptimizerChoice> optimizers);

}  // namespace metaprof
