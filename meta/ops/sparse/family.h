#pragma once
// Sparse tensors, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables sparse_operators();  // sparse.cpp

inline constexpr Tables (*kSparseFamily[])() = {sparse_operators};

}  // namespace metaprof
