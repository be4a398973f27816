#pragma once
// What is known of operators, and which operators of models are known.

#include <string>
#include <string_view>
#include <vector>

#include "estimate/results/operators.h"

namespace metaprof {

/// A row for each operator with this word in its name; empty: for all.
std::vector<OperatorRow> operators_with(std::string_view word);

/// Operators that these models call. Errors: as read_model.
Coverage coverage(const std::vector<std::string>& models);

}  // namespace metaprof
