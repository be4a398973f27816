#pragma once
// Loss scaling for 16-bit gradients (torch.amp.GradScaler, PyTorch 2.11). No step is ever skipped: nothing
// overflows without numbers.

#include "meta/optim/optimizer.h"

namespace metaprof {

class GradScaler {
 public:
  /// `session` must outlive it. Scale and growth tracker are made by the first `scale`.
  explicit GradScaler(Session& session) : session_(session) {}

  /// loss · scale.
  Tensor scale(const Tensor& loss);
  /// Divides the gradients by the scale, in place; `step` does it unless this was called before.
  void unscale(Optimizer& optimizer);
  /// Unscales unless that is done, then optimizer.step().
  void step(Optimizer& optimizer);
  /// Adapts the scale; to be called after `step`, once per step.
  void update();

 private:
  void check(Optimizer& optimizer, const Tensor& inverse_scale, const Tensor& found_inf);

  Session& session_;
  Tensor scale_, growth_tracker_;
  Tensor found_inf_;  ///< the device's copy, kept until `update`
  bool unscaled_ = false;
};

}  // namespace metaprof
