#pragma once
// Versions of PyTorch and what came of comparing estimates by their rules with recordings of them.

#include <span>
#include <string_view>

namespace metaprof {

/// Counts of training steps: equal are those whose allocated and requested bytes are, at the end and at the peak
/// of every phase.
struct ComparedVersion {
  std::string_view version;  ///< "2.6.0"
  int steps, equal;
  int reserved_equal;            ///< peak of reserved bytes
  double worst_allocated_error;  ///< of the peak, as a share
  int cases, cases_equal;        ///< operator cases that are known; equal in every respect
};

/// Oldest first. tools/compare/compare_versions.py writes them.
std::span<const ComparedVersion> compared_versions();

}  // namespace metaprof
