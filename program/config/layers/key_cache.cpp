#include "program/config/layers/key_cache.h"

#include <algorithm>

#include "program/nn/operators.h"

namespace metaprof::configs {

using nn::Tensor;

int64_t KeyCache::keys(int64_t queries, int64_t window) const {
  return (window > 0 ? std::min(tokens_, window - 1) : tokens_) + queries;
}

// A sliding layer's tensor looks into that of the call before, which had one token more.
Tensor KeyCache::before(const nn::AnyModule& module, const Tensor& like, const Sizes& sizes,
                        int64_t window) const {
  Sizes held = sizes;
  const bool slid = window > 1 && tokens_ >= window;
  if (slid) held[2] = window;
  nn::Argument given[] = {held, like.dtype(), std::nullopt, kModelDevice};
  Tensor made = module.make("empty.memory_format", given);
  return slid ? nn::slice(std::move(made), 2, 1, nn::kEnd) : made;
}

void KeyCache::add_layer(const nn::AnyModule& module, const Tensor& like, int64_t batch,
                         const CachedWidths& widths) {
  const int64_t tokens = keys(0, widths.window);
  Tensor first = before(module, like, {batch, widths.heads, tokens, widths.first}, widths.window);
  Tensor second = before(module, like, {batch, widths.heads, tokens, widths.second}, widths.window);
  Layer layer{std::move(first), std::move(second), widths.window};
  nn::Argument given[] = {Sizes{}, DType::i64, std::nullopt, kModelDevice};
  if (layer.window > 0) layer.window_on_device = module.make("empty.memory_format", given);
  layers_.push_back(std::move(layer));
}

std::pair<Tensor, Tensor> KeyCache::update(size_t layer, const Tensor& first, const Tensor& second) {
  Layer& kept = layers_[layer];
  if (kept.window == 0) {
    kept.first = nn::cat({kept.first, first}, 2);
    kept.second = nn::cat({kept.second, second}, 2);
    return {kept.first, kept.second};
  }
  const Tensor all_first = nn::cat({kept.first, first}, 2);
  const Tensor all_second = nn::cat({kept.second, second}, 2);
  const int64_t held = all_first.size(2), begin = std::max<int64_t>(0, held - (kept.window - 1));
  kept.first = nn::slice(all_first, 2, begin, nn::kEnd);
  kept.second = nn::slice(all_second, 2, begin, nn::kEnd);
  return {all_first, all_second};
}

std::vector<Tensor> KeyCache::tensors() const {
  std::vector<Tensor> all;
  for (const Layer& layer : layers_) {
    all.push_back(layer.first);
    all.push_back(layer.second);
  }
  return all;
}

}  // namespace metaprof::configs
