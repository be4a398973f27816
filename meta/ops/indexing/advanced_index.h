#pragma once
// Indexing with tensors: how index tensors, the tensor that they look into and the result fit together
// (aten/src/ATen/native/TensorAdvancedIndexing.cpp, 2.11).

#include "meta/session/call.h"

namespace metaprof {

/// What index tensors are made ready for.
enum class IndexUse {
  geometry,      ///< only sizes and strides: nothing takes memory
  elementwise,   ///< a kernel over the result's elements: all on the device of self, with the same strides
  accumulation,  ///< places to be computed, each on its own device
};

/// An index tensor per dimension of self (undefined: that dimension is taken whole), masks already replaced
/// by the places of their true elements. All defined ones are seen under one size.
struct AdvancedIndex {
  /// `indices` as the operator was given them; `values`: the sizes of what is put there, if something is. How many
  /// elements of a mask are true follows from them, else from what the program says of the result.
  AdvancedIndex(Call& call, const Tensor& self, const Value::Tensors& indices, IndexUse use,
                SizesView values = {});

  std::vector<Tensor> indices;  ///< per dimension of `source`, 64 bits wide, expanded to `index_sizes`
  Tensor source;                ///< self, its indexed dimensions moved to the front if they are apart
  Sizes index_sizes;
  bool moved = false;       ///< the indexed dimensions were apart
  int64_t first = 0;        ///< dimension of `source` where the indexed ones begin
  int64_t count = 0;        ///< how many are indexed
  bool reads_data = false;  ///< there was a mask

  Sizes result_sizes() const;
  /// Strides of a new result: the iterator's order of dimensions.
  Sizes result_strides() const;

 private:
  void move_to_front(const Tensor& self);
};

}  // namespace metaprof
