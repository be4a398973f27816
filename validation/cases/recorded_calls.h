#pragma once
// What a recorded forward says about how to repeat it: the calls at depth 0, the frees between them, and in
// which modes they were made.

#include <optional>
#include <string_view>
#include <vector>

#include "validation/recordings/case_log.h"

namespace metaprof {

/// A call of an operator by the recorded program, or the death of a storage between two calls.
struct RecordedStep {
  size_t begin = 0, end = 0;  ///< indices of the call's lines; of a free both are its line
  bool call = false;
  /// The operator calls itself with cast arguments, as autocast does.
  bool autocast = false;
};

std::vector<RecordedStep> recorded_steps(const std::vector<LogLine>& forward);

/// The lower precision that autocast casts to, if the case was recorded under autocast.
std::optional<DType> autocast_dtype(const RecordedCase& recorded, const std::vector<RecordedStep>& steps);

/// Index of the first line that begins an operator whose host code reads device memory; the number of lines
/// if there is none. The emulated device of the recordings answers 0 to it, so sizes that follow mean
/// nothing.
size_t first_reading_line(const std::vector<LogLine>& lines);

}  // namespace metaprof
