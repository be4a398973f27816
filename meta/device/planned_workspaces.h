#pragma once
// How much scratch memory a library takes for one operation, where only the library itself knows: cuDNN plans
// its convolutions and attention by closed heuristics. Kernels ask here, and nowhere else.

#include <cstdint>
#include <span>

#include "meta/core/dtype.h"
#include "meta/device/profile.h"

namespace metaprof {

enum class PlannedOp : uint8_t { conv_fwd, conv_dgrad, conv_wgrad };

/// A convolution as the framework hands it to cuDNN: 1-D ones as 2-D, groups are x[1] / w[1]. Strides are in
/// elements; x, w and y are input, weight and output whatever is being computed.
struct ConvolutionPlan {
  PlannedOp op;
  std::span<const int64_t> x, w, stride, padding, dilation;
  std::span<const int64_t> x_strides, w_strides, y_strides;
  DType dtype;
};

/// `table`: read from a file of measured or planned sizes; `rule`: ours, 0 where nothing is known.
enum class WorkspaceSource : uint8_t { table, rule };

struct PlannedWorkspace {
  int64_t bytes = 0;
  WorkspaceSource source = WorkspaceSource::rule;
};

/// Answers for a device and its library versions. A session without one assumes that libraries need nothing.
/// One object serves one session at a time: it may count its answers.
class PlannedWorkspaces {
 public:
  virtual ~PlannedWorkspaces() = default;
  virtual PlannedWorkspace convolution(const ConvolutionPlan& plan, const DeviceProfile& device) = 0;
};

}  // namespace metaprof
