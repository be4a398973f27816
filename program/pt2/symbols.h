#pragma once
// The symbols of a .pt2 program: their values, their ranges, and the sizes that follow.

#include "core/formats/json.h"
#include "program/pt2/context.h"

namespace metaprof {

/// Gives every symbol a value, then evaluates every symbolic size of the program. A value comes from
/// `wanted`, else from the export's hints. A size that depends on data has no hint: the largest value that
/// the export allows is taken, with a warning; without such a bound it is an Error that asks for a value.
void resolve_symbols(Json range_constraints, const SymbolValues& wanted, Pt2Context& context);

}  // namespace metaprof
