#pragma once
// What a derivative formula sees: incoming gradients, what its row declared to read, geometry and plain
// values.

#include "meta/session/call.h"

namespace metaprof {

class OpNode;

struct Backward {
  Session& session;
  OpNode& node;
  Gradients& incoming;
  std::span<const Tensor> saved;                     ///< per entry of Operator::saved
  std::span<const std::vector<Tensor>> saved_lists;  ///< the same for lists; empty if no list is saved
  const RowPlan* row = nullptr;

  /// Gradient of result i; may be undefined.
  const Tensor& grad(size_t i = 0) const { return incoming[i]; }
  /// Data of an argument or result that this row declares to read; undefined if the argument was.
  const Tensor& operator()(Name name) const;
  const std::vector<Tensor>& list(Name name) const;

  /// A plain value (number, list, …) that the call was given.
  const Value& operator[](Name name) const;
  double real(Name name) const { return (*this)[name].real(); }
  /// As Call::integer.
  int64_t integer(Name name) const {
    return std::clamp((*this)[name].integer(), -kLargestInteger, kLargestInteger);
  }
  bool boolean(Name name) const { return (*this)[name].boolean(); }
  const Sizes& ints(Name name) const { return (*this)[name].integers(); }
  bool given(Name name) const;

  /// Geometry of a tensor argument or of a result; null if the argument was undefined.
  const TensorImpl* shape(Name name) const;
  const Sizes& sizes(Name name) const { return shape(name)->sizes; }
  DType dtype(Name name) const { return shape(name)->dtype; }
  /// Geometries of a list argument.
  const std::vector<Geometry>& shapes(Name name) const;

  /// The gradient of this argument is wanted; of its element i if it is a list.
  bool wants(Name name) const { return wants(name, 0); }
  bool wants(Name name, size_t i) const;
};

}  // namespace metaprof
