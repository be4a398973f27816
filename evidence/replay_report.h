#pragma once
// Sums over the replayed cases of recordings, as text and as JSON.

#include <array>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "evidence/op_replay.h"

namespace metaprof {

struct ReplayCounts {
  int64_t total = 0, claimed = 0;
  std::array<int64_t, kWhats> equal = {};  ///< of the claimed, by CaseDifference::What

  void add(const CaseResult& result);
};

class ReplayReport {
 public:
  void add(CaseResult result);

  const ReplayCounts& totals() const { return totals_; }
  const std::map<std::string, ReplayCounts>& by_op() const { return by_op_; }
  /// Claimed cases that differ, in the order of the recordings.
  const std::vector<CaseResult>& differing() const { return differing_; }

  /// A row per operator, most differences first; then what is missing, reasons, bytes, totals.
  std::string text() const;
  /// Every difference, case by case.
  std::string differences_text() const;
  std::string json() const;

 private:
  std::string missing_text() const;
  std::string reasons_text() const;
  std::string bytes_text() const;

  ReplayCounts totals_;
  std::map<std::string, ReplayCounts> by_op_;
  std::vector<CaseResult> differing_;
  std::map<std::string, int64_t> blocked_by_, only_blocked_by_;  // operators without a record: cases
};

struct ReplayOptions {
  std::vector<std::string> logs;
  std::string only = "*";  ///< shell wildcard over case names; `*` matches `/` too
  bool verbose = false;
  std::string json = {};  ///< file; empty: none
};

/// The subcommand `metaprof ops --replay`: replays, prints, writes. Errors: a log that cannot be read, a
/// pattern that matches no case. Returns the sums over all cases.
ReplayCounts replay_logs(const ReplayOptions& options, std::ostream& out);

}  // namespace metaprof
