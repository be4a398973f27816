#pragma once
// What holds for every graph. Passes may rely on it and must leave it so: it is checked after each of them.

#include "program/program.h"

namespace metaprof {

/// Errors, each with the node and the value: a value is made twice, or taken before it is made; a call takes or
/// drops a value after it was dropped; an output is dropped; there is no such value or stack; a list of
/// integers lacks a number; checkpointed regions overlap. Graphs inside the graph are checked, too.
void verify(const Program& program, const Graph& graph);

/// The program's graph; and its inputs and outputs are those of the program.
void verify(const Program& program);

}  // namespace metaprof
