#pragma once
// Linear algebra, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables decomposition_operators();       // decompositions.cpp
Tables eigenvalue_operators();          // eigenvalues.cpp
Tables factored_system_operators();     // factored_systems.cpp
Tables householder_operators();         // householder.cpp
Tables least_squares_operators();       // least_squares.cpp
Tables linear_solver_operators();       // linear_solvers.cpp
Tables linear_system_operators();       // linear_systems.cpp
Tables matrix_exponential_operators();  // matrix_exponential.cpp
Tables matrix_norm_operators();         // matrix_norms.cpp
Tables singular_value_operators();      // singular_values.cpp
Tables tensor_equation_operators();     // tensor_equations.cpp

inline constexpr Tables (*kLinearAlgebraFamily[])() = {
    decomposition_operators, eigenvalue_operators,     least_squares_operators,  factored_system_operators,
    householder_operators,   linear_solver_operators,  linear_system_operators,  matrix_exponential_operators,
    matrix_norm_operators,   singular_value_operators, tensor_equation_operators};

}  // namespace metaprof
