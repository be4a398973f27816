#pragma once
// Pooling: windows and the sizes of what they give (aten/src/ATen/native/Pool.h, 2.11).

#include "meta/autograd/engine/backward.h"

namespace metaprof {

/// One number per spatial dimension.
struct PoolWindow {
  Sizes kernel, stride, padding, dilation;
  bool ceil_mode = false;
};

/// The call's window; a single number stands for all dimensions, an empty stride for the kernel. An Error if
/// it cannot be one.
PoolWindow pool_window(const Call& call, size_t dims);
/// Sizes of the output of an input with or without a batch dimension; an Error if nothing is left.
Sizes pooled_sizes(const Call& call, const Tensor& input, const PoolWindow& window);

/// Strides of a result of pooling: the input's format, where the result has as many dimensions.
Sizes pooled_strides(const Tensor& input, SizesView sizes);

/// Gathers a gradient at the places that a pooling kept: the gradient of putting values there.
Tensor gather_at(const Tensor& grad, const Tensor& indices, size_t dims);

/// Zeros in the geometry of an argument, for gradients of gradients that do not depend on it.
Tensor zeros_for(Backward& b, Name argument);

/// Those of "self", the only gradient of a gradient with respect to what was pooled.
Gradients zeros_for_self(Backward& b);
/// Without the dimension before the last, which a pooling of one dimension put in to be one of two.
Tensor squeezed(const Call& call, const Tensor& t);

/// A list argument with one number per spatial dimension.
Sizes spread_over(const Call& call, Name name, size_t dims);

}  // namespace metaprof
