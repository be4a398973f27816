#pragma once
// The rules of the framework's TensorIterator (aten/src/ATen/TensorIterator.cpp, 2.11): sizes by
// broadcasting, one dtype by promotion, and strides of the result by the operands' order of dimensions.

#include "meta/session/call.h"

namespace metaprof {

/// The dtype in which these are combined: dimensioned tensors before 0-dimensional ones before Python
/// numbers.
DType result_type(std::initializer_list<const Tensor*> operands);
DType result_type(std::span<const Tensor> operands);
DType result_type(std::span<const Tensor* const> operands);
/// As above for all tensors and plain numbers among these values.
DType result_type(std::span<const Value> operands);
/// As above for a tensor and a plain number.
DType result_type(const Tensor& tensor, const Value& number);
/// Integers and booleans become the default floating type; others stay.
inline DType to_floating(DType dtype) {
  return is_floating(dtype) || is_complex(dtype) ? dtype : kDefaultDType;
}

/// Sizes after broadcasting all operands; an Error names the operator.
Sizes broadcast_all(const Call& call, std::span<const Tensor* const> operands);
/// Strides of a new result of these sizes: dense, in the order of dimensions of the operands.
Sizes result_strides(SizesView sizes, std::span<const Tensor* const> operands);

/// Adds a result that is elementwise in these operands.
Tensor& elementwise(Call& call, std::initializer_list<const Tensor*> operands, DType dtype);
Tensor& elementwise(Call& call, std::span<const Tensor* const> operands, DType dtype);

/// `per_element` FLOPs for each element of result 0, none of which the framework's counter counts.
template <int per_element>
FlopCount elementwise_flops(const Call& call) {
  return {.own = per_element * call.result_tensor().numel()};
}
/// … for each element of the first tensor argument (reductions).
FlopCount input_flops(const Call& call);

}  // namespace metaprof
