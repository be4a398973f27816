#pragma once
// Slices that take a whole dimension. Up to 2.8, Python's `x[:, 0]` slices the first dimension before it
// selects from the second: a node whose backward makes a gradient of the size of x. Later versions pass over what
// takes everything (aten/src/ATen/TensorIndexing.h, applySlice). So an export of a later version lacks these calls,
// and one of an earlier version has them.

#include "program/program.h"

namespace metaprof {

/// Some call slices a whole dimension, in the graph or in one inside it.
bool has_whole_slices(const Graph& graph);

/// The program with a call for every slice of a whole dimension that the source lines of its calls show. A
/// range with a bound of its own (`x[:n]`) that sliced nothing is taken to end where the dimension does: such
/// slices have no call in any version.
Program with_whole_slices(Program program);

/// The program without such slices: each is an alias of what it took all of.
Program without_whole_slices(Program program);

}  // namespace metaprof
