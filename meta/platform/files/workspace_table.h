#pragma once
// Workspaces from a file: what a closed library was seen to plan, one operation a line (JSON):
//
//   {"op": "conv_fwd", "x": [8,3,64,64], "w": [16,3,3,3], "stride": [1,1], "padding": [1,1],
//    "dilation": [1,1], "dtype": "fp32", "x_stride": […], "w_stride": […], "y_stride": […], "workspace": {"h200": 1024, …}}
//
//   {"op": "sdpa_bwd", "b": 4, "h": 8, "hkv": 2, "sq": 256, "skv": 256, "d": 64, "dv": 64, "dtype": "bf16",
//    "causal": true, "dropout": 0.1, "stats": true, "bias": […], "q_stride": […], "k_stride": […],
//    "v_stride": […], "o_stride": […], "do_stride": […], "workspace": {…}}
//
// "op" is conv_fwd, conv_dgrad, conv_wgrad, sdpa_fwd ("stats") or sdpa_bwd ("do_stride"); "dropout", "bias",
// "causal" and "stats" (true) may be left out. Other operations, types and keys are passed over. Sizes are
// bytes; null: there is no plan.

#include <string>
#include <unordered_map>

#include "meta/platform/planned_workspaces.h"

namespace metaprof {

class WorkspaceTable final : public WorkspacePlanner {
 public:
  /// Reads the sizes for one device. Errors: no such file, a line that is not such an object, one operation
  /// with two sizes, no size for this device.
  WorkspaceTable(const std::string& path, const std::string& device);

  /// Nothing if no line describes the operation.
  std::optional<int64_t> convolution(const ConvolutionPlan& plan, const Platform& platform) override;
  std::optional<int64_t> attention(const AttentionPlan& plan, const Platform& platform) override;

  size_t size() const { return bytes_.size(); }

 private:
  std::optional<int64_t> find(const std::string& question) const;

  std::unordered_map<std::string, int64_t> bytes_;  ///< by the question that a line answers
};

}  // namespace metaprof
