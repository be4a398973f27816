#pragma once
// Views, the operators that are made of them, and their copies, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables view_composite_operators();  // composites.cpp
Tables view_copy_operators();       // copies.cpp
Tables joining_operators();         // joining.cpp
Tables view_part_operators();       // parts.cpp
Tables repeating_operators();       // repeating.cpp
Tables view_operators();            // views.cpp
Tables tuple_operators();           // tuples.cpp

inline constexpr Tables (*kViewsFamily[])() = {
    tuple_operators,     view_composite_operators, view_copy_operators, joining_operators,
    view_part_operators, repeating_operators,      view_operators};

}  // namespace metaprof
