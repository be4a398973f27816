#pragma once
// What is known of operators, and which operators of models are known: what `metaprof ops` shows.

#include <string>
#include <vector>

#include "estimate/results/operators.h"

namespace metaprof {

std::string operators_text(const std::vector<OperatorRow>& rows);

/// {"schema": "metaprof.ops", "schema_version": 1, "operators": [{"name", "schema", …}]}
std::string operators_json(const std::vector<OperatorRow>& rows);

std::string coverage_text(const Coverage& coverage);

/// {"schema": "metaprof.ops_coverage", "schema_version": 1, "models", "models_known", "calls",
/// "calls_known", "operators": [{"op", "known", "calls", "share_of_calls" (0…1), "models"}]}
std::string coverage_json(const Coverage& coverage);

}  // namespace metaprof
