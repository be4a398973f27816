#pragma once
// What tests of image operators share: a session, tensors in it, and the blocks that a call asked for.

#include <gtest/gtest.h>

#include "meta/ops/all.h"
#include "meta/ops/rules/formulas.h"
#include "meta/platform/platform.h"

namespace metaprof {

/// A fresh session on an H200 and what is asked of its allocator since `watch`.
class ImageOps : public testing::Test {
 protected:
  Tensor tensor(SizesView sizes, DType dtype = DType::f32) { return session_->empty(sizes, dtype); }
  Tensor channels_last(SizesView sizes, DType dtype = DType::f32) {
    return session_->empty_strided(sizes, strides_in(MemoryFormat::channels_last, sizes), dtype,
                                   session_->device);
  }
  static Tensor with_gradient(Tensor tensor) {
    tensor->requires_grad = true;
    return tensor;
  }

  void watch() { first_event_ = session_->trace.events.size(); }
  /// Bytes of the blocks asked for since `watch`, in order.
  std::vector<int64_t> allocated() const {
    std::vector<int64_t> bytes;
    for (size_t i = first_event_; i < session_->trace.events.size(); ++i) {
      const Event& event = session_->trace.events[i];
      if (event.kind == Event::Kind::alloc) bytes.push_back(session_->trace.bytes(event.id).count);
    }
    return bytes;
  }
  /// FLOPs by the framework's counter of the last call of this name.
  int64_t counted(std::string_view name) const {
    int64_t flops = -1;
    for (const CallRecord& call : session_->trace.calls)
      if (session_->trace.text(call.op) == name) flops = call.counted.count;
    return flops;
  }

  std::unique_ptr<Session> session_ = make_session(platform_named("h200"));

 private:
  size_t first_event_ = 0;
};

}  // namespace metaprof
