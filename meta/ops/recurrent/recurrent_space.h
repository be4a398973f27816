#pragma once
// Memory that cuDNN's recurrent kernels work in.

#include "meta/ops/recurrent/recurrent.h"

namespace metaprof {

/// What cuDNN's recurrent kernels ask for, in bytes.
struct RecurrentSpace {
  int64_t workspace = 0;
  int64_t reserve = 0;  ///< what training keeps for the backward
};
/// For `rows` = steps × batch. Where sizes of cuDNN count (meta/ops/rules/cudnn_sizes.h), as an H200 was seen to ask:
/// the reserve of 1,822 cases to the byte, the workspace within 8 % on average (tests/measured/h200). Otherwise what the
/// emulated device of the recordings answered.
RecurrentSpace recurrent_space(const Session& session, const RecurrentShape& shape, int64_t rows, DType dtype,
                               bool drops_out);

}  // namespace metaprof
