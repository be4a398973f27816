#pragma once
// Sizes that follow from data where the program shows how the data is spread: a router that sends each token to a few
// of many experts. Each is assumed to get as many as any other.

#include "meta/op/registry.h"
#include "program/program.h"

namespace metaprof {

/// Gives symbols of Program::assumed that count what a mask finds an even share of it, where the mask was made of
/// the places of the largest elements or of one of many (Facts::places_in_last, one_of_last). The rest stays as it
/// is.
void assume_even_shares(Program& program, const Registry& registry);

}  // namespace metaprof
