#pragma once
// What differs between two reports of a step.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace metaprof {

/// A figure that differs, by its place in the report: "peak.allocated_bytes", "phases.forward
/// 0.reserved_bytes.peak", "modules.layer1.saved_bytes".
struct DiffRow {
  std::string figure;
  std::optional<int64_t> before, after;  ///< nothing: that report does not have it
};

struct ProfileDiff {
  std::string before, after;         ///< the reports' files
  std::vector<std::string> options;  ///< "precision: fp32 → amp-bf16", model and device included
  std::vector<DiffRow> rows;         ///< in the order of the reports
};

}  // namespace metaprof
