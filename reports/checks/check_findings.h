#pragma once
// What `metaprof check` found to be outside its tolerance: the same words for text, JUnit and SARIF.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validation/results/check_result.h"

namespace metaprof {

struct CheckRule {
  std::string_view id, description;
};
/// All that there are.
std::span<const CheckRule> check_rules();

struct CheckFinding {
  size_t rule = 0;      ///< index into check_rules()
  std::string message;  ///< one short line
  std::string why;   ///< what changed most, of the first finding of a baseline; empty: the same, or not known
  std::string file;  ///< the measurement, or the baseline
  std::string log;   ///< the file of the measurement's events, if one of them differs
  int64_t line = 0;  ///< of `log`
  std::string source;  ///< the user's file whose line changed most; empty: it is not known
  int64_t source_line = 0;
};

std::vector<CheckFinding> findings_of(const CheckResult& result, double tolerance);
std::vector<CheckFinding> findings_of(const BaselineResult& result, double tolerance);

/// "peak of allocated bytes"
std::string_view title_of(BaselineRow::Figure figure);
/// "line 12: recorded + 8192 in aten::linear > aten::addmm; estimated the end"
std::string difference_text(const EventMismatch& difference);
/// "saved by model.conv1: +4096 B; saved by ConvolutionBackward0: +4096 B; …"; empty: nothing changed.
std::string changes_text(const BaselineResult& result);

}  // namespace metaprof
