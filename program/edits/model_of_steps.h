#pragma once
// The model that a captured program trains, as a program of its own: what its forward calls, for who runs that in another
// order than the run did.

#include "program/program.h"

namespace metaprof {

/// The calls of the last step's forward (of its first micro-batch), with the lifetimes of the run. Inputs are the
/// parameters and buffers that the program names, then whatever else the forward takes that was there before it; the
/// loss is what the backward begins with. What else the program holds is left out. Errors: the program names no
/// parameter; no forward is followed by a backward from one loss that it made; the forward does what only a whole step
/// can (hooks, a backward of its own, streams, other memory for a tensor).
Program model_of_steps(const Program& captured);

}  // namespace metaprof
