#pragma once
// What a decoder has cached of the tokens before those that it is called with, as DynamicCache of transformers 5.17 holds
// it (cache_utils.py): two tensors per layer, to which each call adds by copying them behind each other.

#include <utility>
#include <vector>

#include "program/nn/module.h"

namespace metaprof::configs {

/// One layer's two tensors: keys and values, or the latents that both are made of.
struct CachedWidths {
  int64_t heads = 0, first = 0, second = 0;
  int64_t window = 0;  ///< tokens that sliding attention sees, this one included; 0: all
};

class KeyCache {
 public:
  /// `tokens`: that came before.
  explicit KeyCache(int64_t tokens) : tokens_(tokens) {}

  int64_t tokens() const { return tokens_; }
  /// How many keys `queries` tokens see.
  int64_t keys(int64_t queries, int64_t window) const;

  /// The next layer's tensors, as the calls before have left them, in the type of `like`. `module`: of the program.
  void add_layer(const nn::AnyModule& module, const nn::Tensor& like, int64_t batch,
                 const CachedWidths& widths);
  /// Adds [batch, heads, tokens, width] to both of a layer. Returns all that is seen.
  std::pair<nn::Tensor, nn::Tensor> update(size_t layer, const nn::Tensor& first, const nn::Tensor& second);

  /// What is kept for the next call: both of each layer.
  std::vector<nn::Tensor> tensors() const;

 private:
  struct Layer {
    nn::Tensor first, second;
    int64_t window = 0;
    nn::Tensor window_on_device = {};  ///< a number that sliding layers keep there
  };
  nn::Tensor before(const nn::AnyModule& module, const nn::Tensor& like, const Sizes& sizes,
                    int64_t window) const;

  int64_t tokens_;
  std::vector<Layer> layers_;
};

}  // namespace metaprof::configs
