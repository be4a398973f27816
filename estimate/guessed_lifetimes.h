#pragma once
// Tensors whose lifetimes an export does not tell: what program/source/lifetimes.h guessed, as a run shows it.

#include <vector>

#include "estimate/results/profile.h"
#include "meta/trace/trace.h"
#include "program/program.h"

namespace metaprof {

/// Of the first forward of this run of the program, on the device. What backward keeps lives on in any case and is no
/// doubt; nor are results inside regions (`with torch.no_grad():`), whose calls are not told apart.
std::vector<GuessedRow> guessed_lifetimes(const Program& program, const Trace& trace, Device device);

}  // namespace metaprof
