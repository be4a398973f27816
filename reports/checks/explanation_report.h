#pragma once
// Why memory ran out, as text and as JSON.

#include <string>

#include "estimate/explain/explanation.h"

namespace metaprof {

std::string explanation_text(const OutOfMemoryExplanation& explanation);
/// As reports/schema/explain.schema.json has it; ends with a newline.
std::string explanation_json(const OutOfMemoryExplanation& explanation);

}  // namespace metaprof
