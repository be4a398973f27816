#pragma once
// Tables of positions: an embedding that is indexed by 0, 1, 2 … has a row for each position that the model
// knows, so that a longer sequence ends with an index error.

#include "program/program.h"

namespace metaprof {

/// Errors: the inputs, as they are set, have more positions than such a table has rows.
void check_positions(const Program& program);

}  // namespace metaprof
