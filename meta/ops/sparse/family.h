#pragma once
// Sparse tensors, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables sparse_operators();             // sparse.cpp
Tables coalescing_operators();         // coalescing.cpp
Tables sparse_product_operators();     // products.cpp
Tables sparse_conversion_operators();  // conversions.cpp
Tables dense_conversion_operators();   // dense_conversions.cpp

inline constexpr Tables (*kSparseFamily[])() = {sparse_operators, coalescing_operators,
                                                sparse_product_operators, sparse_conversion_operators,
                                                dense_conversion_operators};

}  // namespace metaprof
