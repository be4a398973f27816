#pragma once
// How much scratch memory a library takes for one operation, where only the library itself knows: cuDNN plans
// its convolutions and attention by closed heuristics. Kernels ask here, and nowhere else.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "meta/platform/platform.h"

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

/// Attention as the framework hands it to cuDNN. Strides are in elements, of [batch, heads, length, width].
struct AttentionPlan {
  bool backward;
  int64_t batch, heads, key_heads, query_length, key_length, width, value_width;
  DType dtype;
  bool causal;
  bool statistics;  ///< the forward returns the logarithms of its sums, which backward needs
  double dropout;
  std::span<const int64_t> bias;  ///< sizes; empty: none
  std::span<const int64_t> q_strides, k_strides, v_strides, o_strides, grad_strides;
};

/// What cuDNN's frontend adds to the plan of an attention backward: an fp32 dQ and one number per row.
int64_t attention_frontend_bytes(const AttentionPlan& plan);

/// One source of answers: bytes, or nothing where it does not know the operation.
class WorkspacePlanner {
 public:
  virtual ~WorkspacePlanner() = default;
  virtual std::optional<int64_t> convolution(const ConvolutionPlan& plan, const Platform& platform) = 0;
  /// The frontend's part included.
  virtual std::optional<int64_t> attention(const AttentionPlan& plan, const Platform& platform) = 0;
};

/// `table`: read from a file of measured or planned sizes; `planned`: the library was asked; `rule`: ours.
enum class WorkspaceSource : uint8_t { table, planned, rule };
inline constexpr size_t kWorkspaceSources = 3;

/// Sources in the order in which they are asked. A session without one assumes that plans need nothing. One
/// object serves one session at a time: it counts its answers.
class PlannedWorkspaces {
 public:
  struct Answers {
    int64_t count = 0, bytes = 0;
  };
  struct Counts {
    std::array<Answers, kWorkspaceSources> answers = {};  ///< by source
    int64_t unanswered = 0;  ///< calls for which no source knew anything: they count as 0 bytes
  };

  void add(WorkspaceSource source, std::unique_ptr<WorkspacePlanner> planner) {
    planners_.emplace_back(source, std::move(planner));
  }
  /// False: nobody is asked, and plans count as 0 bytes.
  bool has_sources() const { return !planners_.empty(); }
  int64_t convolution(const ConvolutionPlan& plan, const Platform& platform);
  int64_t attention(const AttentionPlan& plan, const Platform& platform);
  /// So far.
  const Counts& counts() const { return counts_; }
  /// The different sizes that were answered so far, without 0, and who said each.
  const std::vector<std::pair<int64_t, WorkspaceSource>>& sizes() const { return sizes_; }
  const Answers& answers(WorkspaceSource source) const {
    return counts_.answers[static_cast<size_t>(source)];
  }
  /// What was asked between two moments counts once more: the same is known to be asked again.
  void count_again(const Counts& begin, const Counts& end);

 private:
  template <class Ask>
  std::optional<int64_t> first_answer(const Ask& ask);

  std::vector<std::pair<WorkspaceSource, std::unique_ptr<WorkspacePlanner>>> planners_;
  Counts counts_;
  std::vector<std::pair<int64_t, WorkspaceSource>> sizes_;
};

/// What is stated where neither a table nor the library answers; knows every operation.
///
/// Convolutions: tensor-core kernels read channels-last tensors, so operands of another layout are copied:
/// the bytes of x, w and y. Channels-last operands take nothing. (cuDNN 9.19's own figures for fp32 are
/// between the input's and the sum of all three operands.)
///
/// Attention: the frontend's part and what the kernels of an architecture keep (seen in all plans of cuDNN
/// 9.19 that there are): 256 bytes on compute capability 9.0, 128 in the backward of others; before 9.0 an
/// fp32 dQ of its own, with rows in eights; with fewer key than query heads dK and dV per query head.
class WorkspaceRules final : public WorkspacePlanner {
 public:
  std::optional<int64_t> convolution(const ConvolutionPlan& plan, const Platform& platform) override;
  std::optional<int64_t> attention(const AttentionPlan& plan, const Platform& platform) override;
};

}  // namespace metaprof
