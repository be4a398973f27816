#pragma once
// A question to a library about its workspace as text: the same for a question of a kernel, a line of a table and
// a line to the helper that asks cuDNN.
//
//   conv_fwd|fp32|8,3,64,64,|16,3,3,3,|1,1,|1,1,|1,1,|12288,4096,64,1,|27,9,3,1,|65536,4096,64,1,
//   sdpa_bwd|bf16|B|H|HKV|SQ|SKV|D|DV|causal|dropout|statistics|bias|q_strides|k_strides|v_strides|o_strides|grad_strides

#include <string>
#include <string_view>
#include <vector>

#include "meta/platform/planned_workspaces.h"

namespace metaprof {

inline constexpr PlannedOp kPlannedOps[] = {PlannedOp::conv_fwd, PlannedOp::conv_dgrad,
                                            PlannedOp::conv_wgrad};
inline constexpr DType kPlannedDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

std::string_view to_string(PlannedOp op);
/// "fp32", as tables and cuDNN's own tools name it.
std::string_view workspace_dtype_name(DType dtype);

std::string to_text(const ConvolutionPlan& plan);
std::string to_text(const AttentionPlan& plan);

/// A convolution that owns its lists.
struct ConvolutionQuestion {
  using Integers = std::vector<int64_t>;
  PlannedOp op = PlannedOp::conv_fwd;
  DType dtype = DType::f32;
  Integers x, w, stride, padding, dilation, x_strides, w_strides, y_strides;

  ConvolutionPlan plan() const;
};

/// The inverse of to_text. Errors: anything else; lists that do not fit each other.
ConvolutionQuestion parse_convolution(std::string_view text);

}  // namespace metaprof
