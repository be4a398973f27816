#pragma once
// Two profiles compared: what `metaprof diff` shows.

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

/// `before` and `after`: texts of reports that `metaprof profile --json` wrote; the names are for messages.
/// Errors: no JSON, another schema or version.
ProfileDiff diff_profiles(const std::string& before_name, const std::string& before,
                          const std::string& after_name, const std::string& after);

/// All totals, and `top` of the other figures, those of bytes that changed most first; negative: all, in the
/// order of the reports.
std::string diff_text(const ProfileDiff& diff, int top);
std::string diff_json(const ProfileDiff& diff);

}  // namespace metaprof
