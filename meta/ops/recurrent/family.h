#pragma once
// Recurrent networks, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables recurrent_operators();        // recurrent.cpp
Tables recurrent_cell_operators();   // recurrent_cells.cpp
Tables cudnn_recurrent_operators();  // recurrent_cudnn.cpp
Tables packed_sequence_operators();  // packed.cpp

inline constexpr Tables (*kRecurrentFamily[])() = {recurrent_operators, recurrent_cell_operators,
                                                   cudnn_recurrent_operators, packed_sequence_operators};

}  // namespace metaprof
