#pragma once
// Memory as JSON, for the reports that have it: rows of phases, the peak (docs/reference/profile_report.md).

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "profiler/profile.h"

namespace metaprof {

/// Null for an empty text.
nlohmann::ordered_json text_or_null(const std::string& text);
/// Adds "phase", "step" (none for setup) and "micro" (if the step has several).
void add_part(nlohmann::ordered_json& json, const StepPart& part);
/// Adds "allocated_bytes" and the other statistics, each with "current" and "peak".
void add_numbers(nlohmann::ordered_json& json, const AllocatorNumbers& numbers);
nlohmann::ordered_json phases_json(const Phases& phases);
/// What a module takes, from "path" to "backward_out". `types`: path → type; a path that is not in it has "".
nlohmann::ordered_json module_json(const ModuleRow& row, const std::map<std::string, std::string>& types);
nlohmann::ordered_json peak_json(const MemoryProfile& memory);

}  // namespace metaprof
