#pragma once

#include "meta/tensor/value.h"

namespace metaprof {

struct Call;

/// Numbers for tensors that live on a device: runs calls there. Two of them can serve a session at once, one per
/// type of device.
class Backend {
 public:
  virtual ~Backend() = default;
  /// Runs a call of an operator that is no composite; geometry and memory come from run_record.
  virtual void run(Call& call) = 0;
  /// A Python number has become this tensor.
  virtual void wrapped(const Tensor& tensor, const Value& number) = 0;
};

}  // namespace metaprof
