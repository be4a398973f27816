#pragma once
// The estimate and measurements of the same steps beside each other, phase by phase.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "validation/results/check_result.h"

namespace metaprof {

/// One statistic of one phase as each of them says it.
struct JoinedRow {
  StepPart part;
  std::string field;  ///< "allocated_bytes.peak"
  std::vector<std::optional<int64_t>>
      values;  ///< of the estimate, then of each measurement; nothing: it has none
  bool equal() const;
};

/// Rows of results whose estimate is the same.
std::vector<JoinedRow> joined(std::span<const CheckResult* const> results);

/// "emulated", "real", with the file's name where several are the same.
std::vector<std::string> column_titles(std::span<const CheckResult* const> results);

/// "-" of nothing.
std::string number_text(const std::optional<int64_t>& value);

/// A line for each phase: peaks of allocated and reserved bytes, and the statistics that differ.
std::string phase_table_text(std::span<const CheckResult* const> results);

/// A list with an object for each phase, whose statistics have `current` and `peak` as each says it.
nlohmann::ordered_json phase_table_json(std::span<const CheckResult* const> results);

}  // namespace metaprof
