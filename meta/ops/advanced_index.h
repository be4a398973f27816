#pragma once
// Indexing with tensors: how index tensors, the tensor that they look into and the result fit together
// (aten/src/ATen/native/TensorAdvancedIndexing.cpp, 2.11).

#include "meta/op/call.h"

namespace metaprof {

/// The index itself, with 64 bits.
Tensor wide_index(Call& call, const Tensor& index);

/// An index tensor per dimension of self (undefined: that dimension is taken whole), masks already replaced
/// by the places of their true elements. All defined ones are seen under one size.
struct AdvancedIndex {
  /// `indices` as the operator was given them. In a kernel masks are searched, which takes memory; otherwise
  /// (`search_masks` false) they count as finding nothing.
  AdvancedIndex(Call& call, const Tensor& self, const Value::Tensors& indices, bool search_masks);

  std::vector<Tensor> indices;  ///< per dimension of `source`, expanded to `index_sizes`
  Tensor source;                ///< self, its indexed dimensions moved to the front if they are apart
  Sizes index_sizes;
  bool moved = false;       ///< the indexed dimensions were apart
  int64_t first = 0;        ///< dimension of `source` where the indexed ones begin
  int64_t count = 0;        ///< how many are indexed
  bool reads_data = false;  ///< there was a mask

  /// Brings index tensors of the host to the device of `source`, and 32-bit ones to 64 bits.
  void move_to_source(Call& call);
  Sizes result_sizes() const;
  /// Strides of a new result: the iterator's order of dimensions.
  Sizes result_strides() const;
  /// Copies that give all index tensors the same strides, if they differ; keep them alive during the kernel.
  std::vector<Tensor> contiguous_indices(Call& call) const;
};

}  // namespace metaprof
