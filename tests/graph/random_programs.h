#pragma once
// Random programs of functions that write to inputs of every kind, run eagerly and through a tree of graphs.

#include <functional>
#include <memory>

#include "tests/graph/numbers_runner.h"

namespace metaprof {

using MakeArithmetic = std::function<std::unique_ptr<Arithmetic>()>;

/// Programs with seeds from 0 on: all numbers are those of an eager run after every call, and among the programs
/// there are enough replays, recordings behind resumed pools, and inputs of all kinds (a, b, c, d).
void run_random_programs(unsigned programs, const MakeArithmetic& make_arithmetic);

}  // namespace metaprof
