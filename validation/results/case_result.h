#pragma once
// What comes of repeating recorded operator cases.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace metaprof {

/// One thing that is not as recorded.
struct CaseDifference {
  enum class What : uint8_t { outputs, saved, forward_events, backward_events, grads };
  What what;
  std::string expected, got;
  int64_t bytes = 0;  ///< of events: all that was requested here, less what was in the recording
};
inline constexpr int kWhats = 5;
std::string_view to_string(CaseDifference::What);

struct CaseResult {
  std::string name = {};
  std::string device = {};  ///< "h200", "cpu"
  std::string op = {};      ///< the second part of the name: "nn.functional.conv2d", "layer_norm"
  std::vector<std::string> missing =
      {};  ///< operators without a record, once each; empty: the case is claimed
  std::vector<CaseDifference> differences = {};
  std::string forward_error = {},
              backward_error = {};  ///< an operator failed: all that comes after it is unequal

  std::string reason = {};  ///< why it differs, where that is known
  /// It reads device memory, which is 0 where it was recorded: only what comes before that was compared.
  bool cut_short = false;

  bool claimed() const { return missing.empty(); }
  bool equal(CaseDifference::What what) const;
  bool all_equal() const { return differences.empty() && forward_error.empty() && backward_error.empty(); }
};

struct CaseCounts {
  int64_t total = 0, claimed = 0;  ///< without those that were cut short
  int64_t cut_short = 0,
          cut_equal = 0;  ///< of these: all, and those that are equal as far as they were compared
  std::array<int64_t, kWhats> equal = {};  ///< of the claimed, by CaseDifference::What

  void add(const CaseResult& result);
  /// Everything that is claimed is equal, and everything that was cut short as far as it goes.
  bool all_equal() const;
};

/// Sums over the cases of recordings.
struct CaseSummary {
  CaseCounts totals;
  std::map<std::string, CaseCounts> by_op;
  std::vector<CaseResult> differing;  ///< claimed cases that differ, in the order of the recordings
  std::map<std::string, int64_t> blocked_by, only_blocked_by;  ///< operators without a record: cases

  void add(CaseResult result);
};

}  // namespace metaprof
