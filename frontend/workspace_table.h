#pragma once
// Workspaces from a file: what a closed library was seen to plan, one operation a line (JSON):
//
//   {"op": "conv_fwd", "x": [8,3,64,64], "w": [16,3,3,3], "stride": [1,1], "padding": [1,1], "dilation":
//   [1,1],
//    "dtype": "fp32", "x_stride": […], "w_stride": […], "y_stride": […], "workspace": {"h200": 1024, …}}
//
// "op" is conv_fwd, conv_dgrad or conv_wgrad; other operations and other keys are passed over. Sizes are
// bytes.

#include <string>
#include <unordered_map>

#include "meta/device/planned_workspaces.h"

namespace metaprof {

class WorkspaceTable final : public PlannedWorkspaces {
 public:
  /// Reads the sizes for one device. Errors: no such file, a line that is not such an object, one operation
  /// with two sizes, no size for this device.
  WorkspaceTable(const std::string& path, const std::string& device);

  /// An operation that no line describes takes nothing, by rule.
  PlannedWorkspace convolution(const ConvolutionPlan& plan, const DeviceProfile& device) override;

  size_t size() const { return bytes_.size(); }
  int64_t found() const { return found_; }    ///< questions answered from the table
  int64_t blocks() const { return blocks_; }  ///< of those: with more than 0 bytes
  int64_t missed() const { return missed_; }  ///< questions that no line describes

 private:
  std::unordered_map<std::string, int64_t> bytes_;  ///< by the operation as text
  int64_t found_ = 0, blocks_ = 0, missed_ = 0;
};

}  // namespace metaprof
