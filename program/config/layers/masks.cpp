#include "program/config/layers/masks.h"

#include "program/nn/operators.h"

namespace metaprof::configs {
namespace {

using nn::Tensor;

// sliding_window_causal_mask_function: and_masks(sliding_window_overlay, causal_mask_function).
Tensor near_and_before(const Tensor& queries, const Tensor& keys, int64_t window) {
  Tensor seen = nn::call("new_ones", queries, Sizes{}, DType::b8);
  seen = nn::call("bitwise_and.Tensor", seen,
                  nn::call("gt.Tensor", keys, nn::call("sub.Tensor", queries, window)));
  return nn::call("bitwise_and.Tensor", seen, nn::call("le.Tensor", keys, queries));
}

}  // namespace

Tensor causal_mask(const nn::AnyModule& module, const Tensor& hidden, int64_t window, int64_t keys_seen) {
  const int64_t batch = hidden.size(0), length = hidden.size(1);
  if (keys_seen == 0) keys_seen = length;
  const Tensor examples = module.arange(batch);
  const Tensor heads = module.arange(1);
  const Tensor rows = nn::call("add.Tensor", module.arange(length), 0);
  const Tensor columns = nn::call("add.Tensor", module.arange(keys_seen), 0);
  const Tensor queries = nn::unsqueeze(nn::unsqueeze(nn::unsqueeze(rows, 0), 0), 3);
  const Tensor keys = nn::unsqueeze(nn::unsqueeze(nn::unsqueeze(columns, 0), 0), 0);
  Tensor seen = window > 0 ? near_and_before(queries, keys, window) : nn::call("le.Tensor", keys, queries);
  return nn::expand(std::move(seen), {batch, -1, length, keys_seen});
}

Tensor additive_causal_mask(const nn::AnyModule& module, const Tensor& hidden, int64_t window, int64_t keys) {
  const Tensor seen = causal_mask(module, hidden, window, keys);
  nn::Argument given[] = {Sizes{}, 0.0, hidden.dtype(), std::nullopt, kModelDevice};
  const Tensor zero = module.make("full", given);
  return nn::call("where.ScalarOther", seen, zero, -3.4e38);
}

}  // namespace metaprof::configs
