#pragma once
// Captured programs as they would be if they had been written a little differently: another optimizer, another
// precision, modules computed again, fewer steps. Each function changes the program's calls; what cannot be changed is
// an Error that names the option and the call in the way.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meta/op/registry.h"
#include "program/program.h"

namespace metaprof {

/// The program's optimizers become those of this word and implementation ("adamw", "default"), over the same
/// parameters; a constructor and a step are one call each, step::optimizer. Errors: the program takes no step of an
/// optimizer; its parameters are not known; another call takes what the optimizer has made; gradients are unscaled,
/// which fused steps do themselves.
void replace_optimizers(Program& program, const std::string& name, const std::string& implementation);

/// What follows the first `steps` steps is left out. Errors: the program has fewer.
void keep_steps(Program& program, int64_t steps);

/// Parameters, buffers and inputs of the program's own floating dtype become those of `state`, and so do the dtypes that
/// calls are given, unless the source names them. Errors: no parameter is floating.
void change_precision(Program& program, const Registry& registry, DType state);

/// What modules did with their weights when they were moved is left to the rules of the operators that take them, one
/// step::placed for each list of weights: for a program whose parameters got another dtype.
void place_weights_again(Program& program, const Registry& registry);

/// Conversions that changed nothing give back their argument to those who used that: for a program that is to be run in
/// another dtype, where they do change something.
void part_conversions(Program& program);

/// Forward phases run under autocast to `dtype`; nothing: without. Regions of the program's own are switched; where it has
/// none, each forward is one.
void change_autocast(Program& program, std::optional<DType> dtype);

/// These calls are computed again in backward, too. Regions of the program's own that lie within them go with them.
/// Errors: a region has a backward or a phase in it, or lies within one of the program's own.
void checkpoint_modules(Program& program, const std::vector<CheckpointRegion>& regions);

/// Each step takes `count` micro-batches. Errors: steps have several already; the first step's calls are not those of the
/// second one.
void accumulate(Program& program, int count);

}  // namespace metaprof
