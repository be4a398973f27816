#pragma once
// Sparse tensors, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables sparse_operators();      // sparse.cpp
Tables coalescing_operators();  // coalescing.cpp

inline constexpr Tables (*kSparseFamily[])() = {sparse_operators, coalescing_operators};

}  // namespace metaprof
