#pragma once
// New tensors, and what is written into tensors, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables assignment_operators();  // assignment.cpp
Tables creation_operators();    // creation.cpp
Tables factory_operators();     // factories.cpp
Tables resizing_operators();    // resizing.cpp
Tables window_operators();      // windows.cpp

inline constexpr Tables (*kCreationFamily[])() = {assignment_operators, creation_operators, factory_operators,
                                                  resizing_operators, window_operators};

}  // namespace metaprof
