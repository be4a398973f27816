#pragma once
// Programs of one to three calls that are made from the schemas of operators, or from the examples of their records.

#include "program/program.h"

namespace metaprof {

/// The case with this number: inputs, calls that take them and each other's results, and a loss. It may be wrong in any way
/// that the text of a program can be.
Program random_calls(uint64_t seed, uint64_t number);

}  // namespace metaprof
