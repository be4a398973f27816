#pragma once
// Sorting, selecting and searching, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables searching_operators();  // searching.cpp
Tables selection_operators();  // selection.cpp
Tables sorting_operators();    // sorting.cpp
Tables unique_operators();     // unique.cpp

inline constexpr Tables (*kOrderingFamily[])() = {searching_operators, selection_operators, sorting_operators,
                                                  unique_operators};

}  // namespace metaprof
