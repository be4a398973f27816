#pragma once
// Reading and writing at given places, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables embedding_operators();       // embedding.cpp
Tables embedding_bag_operators();   // embedding_bag.cpp
Tables indexing_operators();        // indexing.cpp
Tables jagged_operators();          // jagged.cpp
Tables scatter_operators();         // scatter.cpp
Tables scatter_reduce_operators();  // scatter_reduce.cpp

inline constexpr Tables (*kIndexingFamily[])() = {embedding_operators, embedding_bag_operators,
                                                  indexing_operators,  jagged_operators,
                                                  scatter_operators,   scatter_reduce_operators};

}  // namespace metaprof
