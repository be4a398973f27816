#pragma once
// A Program as a graph that can be compiled.

#include <memory>

#include "graph/ir/graph.h"
#include "meta/program/program.h"

namespace metaprof::ir {

/// One input per input of the program, one output per output. Errors name the call and say what to do: an operator
/// without a record; a call with a graph inside (a checkpoint, a region of autocast or without gradients).
std::shared_ptr<Graph> from_program(const Program& program, const Registry& registry);

}  // namespace metaprof::ir
