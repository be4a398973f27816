#pragma once
// Sparse tensors, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables sparse_operators();             // sparse.cpp
Tables coalescing_operators();         // coalescing.cpp
Tables sparse_product_operators();     // products.cpp
Tables sparse_conversion_operators();  // conversions.cpp
Tables dense_conversion_operators();   // dense_conversions.cpp
Tables compressed_operators();         // compressed.cpp
Tables sparse_softmax_operators();     // sparse_softmax.cpp
Tables sparse_sum_operators();         // sparse_sums.cpp
Tables two_sparse_operators();         // two_sparse.cpp
Tables sampled_product_operators();    // sampled_products.cpp

inline constexpr Tables (*kSparseFamily[])() = {sparse_operators,           coalescing_operators,
                                                sparse_product_operators,   sparse_conversion_operators,
                                                dense_conversion_operators, compressed_operators,
                                                sparse_softmax_operators,   sparse_sum_operators,
                                                two_sparse_operators,       sampled_product_operators};

}  // namespace metaprof
