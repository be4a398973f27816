#pragma once
// Sizes, strides and what follows from them. All counts are in elements.

#include <cstdint>
#include <string>

#include "core/dtype.h"
#include "core/small_vector.h"

namespace metaprof {

/// Sizes or strides of a tensor; six dimensions need no allocation.
using Sizes = SmallVector<int64_t, 6>;
using SizesView = std::span<const int64_t>;

/// Numbers are c10::MemoryFormat's.
enum class MemoryFormat : int8_t { contiguous = 0, preserve = 1, channels_last = 2, channels_last_3d = 3 };

/// a·b; an error that says "overflow" if it leaves 64 bits.
int64_t multiply(int64_t a, int64_t b);
/// Product of the sizes; an error if it leaves 64 bits.
int64_t numel(SizesView sizes);
/// Row-major strides; a size of 0 counts as 1, as in the framework.
Sizes contiguous_strides(SizesView sizes);
/// Strides of `sizes` in a format; channels_last needs 4 dimensions (3-D: 5).
Sizes strides_in(MemoryFormat format, SizesView sizes);

bool is_contiguous(SizesView sizes, SizesView strides);
/// The strides are those of channels_last (4-D) or channels_last_3d (5-D), sizes of 1 ignored.
bool is_channels_last(SizesView sizes, SizesView strides);
/// Looks like channels_last rather than contiguous: the framework's `suggest_memory_format`.
bool suggests_channels_last(SizesView sizes, SizesView strides);
/// As above, as a format: channels_last of 4 or 5 dimensions, or contiguous.
MemoryFormat suggested_format(SizesView sizes, SizesView strides);
/// Every element has one place and there are no gaps.
bool is_non_overlapping_and_dense(SizesView sizes, SizesView strides);
/// Strides for a new dense tensor that keeps the order of dimensions of `strides`
/// (at::infer_dense_strides: what `empty_like(preserve)` gives a tensor with gaps).
Sizes dense_strides_like(SizesView sizes, SizesView strides);
/// Strides with which a tensor can be seen under other sizes without a copy; false if it cannot.
bool view_strides(SizesView sizes, SizesView strides, SizesView new_sizes, Sizes& new_strides);
/// Resolves one -1 so that the product is `count`; an error otherwise.
Sizes infer_size(SizesView sizes, int64_t count);
/// Sizes after broadcasting; an error if they do not fit.
Sizes broadcast(SizesView a, SizesView b);
/// Sizes without the last `count`, as those of a batch without its matrices; an error if there are fewer.
Sizes without_last(SizesView sizes, size_t count);
/// Elements of storage that a tensor with these sizes and strides spans, from its first element.
int64_t span_of(SizesView sizes, SizesView strides);

/// A dimension that may be negative, counted from the end; an error names the range. 0-D counts as 1-D.
int64_t wrap_dim(int64_t dim, int64_t dims);
/// Size of a dimension that may be negative; an error if there is none, also of 0-D.
int64_t size_of(SizesView sizes, int64_t dim);

/// "[2,3]"
std::string to_string(SizesView sizes);

}  // namespace metaprof
