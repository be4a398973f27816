#pragma once
// A Program as a graph that can be compiled.

#include <memory>

#include "program/program.h"
#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// One input per input of the program, one output per output. `training`: false: dropout and normalisation as outside
/// of training, although the program was exported in training mode. Errors name the call and say what to do: an operator
/// without a record; a call with a graph inside, other than a region without gradients or without autocast; a program
/// captured from a run, or one whose inputs have other sizes than those that its calls name.
std::shared_ptr<Graph> from_program(const Program& program, const Registry& registry, bool training = true);

}  // namespace metaprof::ir
