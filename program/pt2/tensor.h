#pragma once
// What a .pt2 file says of a value: entries of tensor_values, sym_int_values and their like.

#include "core/formats/json.h"
#include "program/pt2/context.h"

namespace metaprof {

/// An entry of tensor_values, and whether it is the first of its text. Sizes that are symbolic are still 0; see
/// resolve_symbols.
std::pair<const TensorFacts&, bool> tensor_of(Json entry, Pt2Context& context);

/// An entry of sym_int_values, sym_bool_values or sym_float_values, into `facts`.
void read_symbolic_value(Json entry, ValueFacts& facts, Pt2Context& context);

}  // namespace metaprof
