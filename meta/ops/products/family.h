#pragma once
// Products of vectors and matrices, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables contraction_operators();      // contractions.cpp
Tables einsum_operators();           // einsum.cpp
Tables few_bits_operators();         // few_bits.cpp
Tables grouped_product_operators();  // grouped.cpp
Tables matmul_operators();           // matmul.cpp
Tables matrix_chain_operators();     // matrix_chains.cpp
Tables scaled_product_operators();   // scaled.cpp
Tables vector_geometry_operators();  // vector_geometry.cpp
Tables vector_product_operators();   // vector_products.cpp

inline constexpr Tables (*kProductsFamily[])() = {
    contraction_operators,     einsum_operators,          few_bits_operators,
    grouped_product_operators, matmul_operators,          matrix_chain_operators,
    scaled_product_operators,  vector_geometry_operators, vector_product_operators};

}  // namespace metaprof
