#pragma once
// Scaled dot product attention: which implementation runs, and what they share.

#include "meta/session/call.h"

namespace metaprof {

enum class AttentionBackend : uint8_t { math, flash, efficient, cudnn, flash_for_cpu };

/// What the choice depends on. Tensors are [batch, heads, length, size of a head].
struct AttentionCall {
  const Tensor &query, &key, &value, &mask;  ///< mask may be undefined
  double dropout = 0;
  bool causal = false;
  bool grouped_heads = false;  ///< keys and values may have fewer heads
  /// cuDNN trains heads wider than 128 only in some pairs of sizes; else all that it runs.
  bool wide_heads_train_in_pairs = false;

  bool requires_grad() const { return query.requires_grad() || key.requires_grad() || value.requires_grad(); }
};

/// As traces name it: "attention::memory-efficient".
std::string_view to_string(AttentionBackend backend);

/// An implementation, and why it did not take the call: the first of its conditions that is not met.
struct AttentionRefusal {
  AttentionBackend backend;
  const char* why;
};

struct AttentionChoice {
  AttentionBackend taken = AttentionBackend::math;
  SmallVector<AttentionRefusal, 4> refused;  ///< those that would have come first, in their order
};

/// The implementation that PyTorch takes on this device (aten/src/ATen/native/transformers/cuda/
/// sdp_utils.cpp and sdp_utils_cpp.cpp).
AttentionChoice choose_attention(const Session& session, const AttentionCall& call);

/// What the framework's counter says of a forward (2 products) and of a backward (5 products): arguments
/// "query", "key", "value". Causal masks do not halve it.
FlopCount attention_flops(const Call& call);
FlopCount attention_backward_flops(const Call& call);

}  // namespace metaprof
