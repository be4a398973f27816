#include "core/shape.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace metaprof {

int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) fail("overflow: {} * {} exceeds 64 bits", a, b);
  return product;
}

int64_t numel(SizesView sizes) {
  int64_t count = 1;
  bool overflow = false;
  for (int64_t size : sizes) {
    if (size == 0) return 0;
    overflow |= __builtin_mul_overflow(count, size, &count);
  }
  if (overflow) fail("overflow: the number of elements of {} exceeds 64 bits", to_string(sizes));
  return count;
}

Sizes contiguous_strides(SizesView sizes) {
  Sizes strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    if (__builtin_mul_overflow(step, std::max<int64_t>(sizes[d], 1), &step)) step = INT64_MAX;
  }
  return strides;
}

Sizes strides_in(MemoryFormat format, SizesView sizes) {
  const size_t dims = sizes.size();
  if (format == MemoryFormat::channels_last && dims != 4)
    fail("channels_last needs 4 dimensions, got {}", to_string(sizes));
  if (format == MemoryFormat::channels_last_3d && dims != 5)
    fail("channels_last_3d needs 5 dimensions, got {}", to_string(sizes));
  if (format != MemoryFormat::channels_last && format != MemoryFormat::channels_last_3d)
    return contiguous_strides(sizes);
  Sizes strides(dims);
  strides[1] = 1;
  int64_t step = sizes[1];
  for (size_t d = dims; d-- > 2;) {
    strides[d] = step;
    step *= sizes[d];
  }
  strides[0] = step;
  return strides;
}

bool is_contiguous(SizesView sizes, SizesView strides) {
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    // Without elements every tensor is contiguous, however large its other sizes are.
    if (strides[d] != step) return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
    if (__builtin_mul_overflow(step, sizes[d], &step))
      return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  }
  return true;
}

bool is_channels_last(SizesView sizes, SizesView strides) {
  const size_t dims = sizes.size();
  if (dims != 4 && dims != 5) return false;
  int64_t step = 1;
  auto fits = [&](size_t d) {
    if (sizes[d] == 1) return true;
    if (strides[d] != step) return false;
    step *= sizes[d];
    return true;
  };
  if (!fits(1)) return false;
  for (size_t d = dims; d-- > 2;)
    if (!fits(d)) return false;
  return fits(0);
}

bool suggests_channels_last(SizesView sizes, SizesView strides) {
  // c10/core/MemoryFormat.h, is_channels_last_strides_2d_s4: an ambiguous N×1×H×W stays contiguous.
  const size_t dims = sizes.size();
  if ((dims != 4 && dims != 5) || strides[1] == 0) return false;
  int64_t least = 0;
  auto follows = [&](size_t d) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d];
    if (sizes[d] > 1) least *= sizes[d];
    return true;
  };
  if (!follows(1)) return false;
  for (size_t d = dims; d-- > 2;)
    if (!follows(d)) return false;
  return follows(0);
}

MemoryFormat suggested_format(SizesView sizes, SizesView strides) {
  if (!suggests_channels_last(sizes, strides)) return MemoryFormat::contiguous;
  return sizes.size() == 5 ? MemoryFormat::channels_last_3d : MemoryFormat::channels_last;
}

bool is_non_overlapping_and_dense(SizesView sizes, SizesView strides) {
  if (is_contiguous(sizes, strides)) return true;
  SmallVector<uint32_t, 6> order;
  for (uint32_t d = 0; d < sizes.size(); ++d) order.push_back(d);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (sizes[a] < 2) return false;
    if (sizes[b] < 2) return true;
    return strides[a] < strides[b];
  });
  int64_t step = 1;
  for (uint32_t d : order) {
    if (sizes[d] < 2) return true;
    if (strides[d] != step) return false;
    step *= sizes[d];
  }
  return true;
}

Sizes dense_strides_like(SizesView sizes, SizesView strides) {
  if (is_non_overlapping_and_dense(sizes, strides)) return Sizes(strides);
  // ATen/ExpandUtils.cpp, infer_dense_strides: insertion sort by stride from the last dimension on;
  // a stride of 0 is ambiguous and swaps with nothing, equal strides are ordered by size.
  const int dims = static_cast<int>(sizes.size());
  SmallVector<int, 6> order;
  for (int d = dims - 1; d >= 0; --d) order.push_back(d);
  auto should_swap = [&](int a, int b) {
    if (strides[a] == 0 || strides[b] == 0) return 0;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    return sizes[a] > sizes[b] ? 1 : 0;
  };
  for (int i = 1; i < dims; ++i) {
    int at = i;
    for (int j = i - 1; j >= 0; --j) {
      int verdict = should_swap(order[j], order[at]);
      if (verdict > 0) {
        std::swap(order[j], order[at]);
        at = j;
      } else if (verdict < 0) {
        break;
      }
    }
  }
  Sizes out(sizes.size());
  int64_t step = 1;
  for (int d : order) {
    out[d] = step;
    if (sizes[d] > 1) step *= sizes[d];
  }
  return out;
}

bool view_strides(SizesView sizes, SizesView strides, SizesView new_sizes, Sizes& new_strides) {
  const int64_t count = numel(sizes);
  if (count == 0) {
    if (std::equal(sizes.begin(), sizes.end(), new_sizes.begin(), new_sizes.end())) {
      new_strides = Sizes(strides);
      return true;
    }
    new_strides = contiguous_strides(new_sizes);
    return true;
  }
  new_strides = Sizes(new_sizes.size());
  if (sizes.empty()) {
    std::fill(new_strides.begin(), new_strides.end(), 1);
    return true;
  }
  // ATen/TensorUtils.cpp, computeStride_impl: runs of dimensions that lie behind each other can be cut anew.
  int64_t view_d = static_cast<int64_t>(new_sizes.size()) - 1;
  int64_t base_stride = strides.back();
  int64_t tensor_count = 1, view_count = 1;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    tensor_count *= sizes[d];
    const bool run_ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != tensor_count * base_stride);
    if (!run_ends) continue;
    while (view_d >= 0 && (view_count < tensor_count || new_sizes[view_d] == 1)) {
      new_strides[view_d] = view_count * base_stride;
      view_count *= new_sizes[view_d];
      --view_d;
    }
    if (view_count != tensor_count) return false;
    if (d > 0) {
      base_stride = strides[d - 1];
      tensor_count = view_count = 1;
    }
  }
  return view_d == -1;
}

Sizes infer_size(SizesView sizes, int64_t count) {
  Sizes out(sizes);
  int64_t known = 1;
  int unknown = -1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1) {
      if (unknown >= 0) fail("only one dimension can be inferred, got {}", to_string(sizes));
      unknown = static_cast<int>(d);
    } else if (sizes[d] < 0) {
      fail("negative size in {}", to_string(sizes));
    } else {
      known = multiply(known, sizes[d]);
    }
  }
  if (unknown >= 0) {
    if (known == 0 || count % known != 0)
      fail("shape {} is invalid for {} elements", to_string(sizes), count);
    out[unknown] = count / known;
  } else if (known != count) {
    fail("shape {} is invalid for {} elements", to_string(sizes), count);
  }
  return out;
}

Sizes broadcast(SizesView a, SizesView b) {
  const size_t dims = std::max(a.size(), b.size());
  Sizes out(dims);
  for (size_t i = 0; i < dims; ++i) {  // from the last dimension
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) fail("shapes {} and {} do not broadcast", to_string(a), to_string(b));
    out[dims - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Sizes without_last(SizesView sizes, size_t count) {
  if (sizes.size() < count) fail("at least {} dimensions are needed, got {}", count, to_string(sizes));
  return Sizes(sizes.begin(), sizes.end() - static_cast<int64_t>(count));
}

int64_t span_of(SizesView sizes, SizesView strides) {
  int64_t span = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    const int64_t reach = multiply(sizes[d] - 1, strides[d]);
    if (__builtin_add_overflow(span, reach, &span))
      fail("overflow: a tensor of sizes {} spans more than 64 bits", to_string(sizes));
  }
  return span;
}

int64_t wrap_dim(int64_t dim, int64_t dims) {
  const int64_t range = std::max<int64_t>(dims, 1);
  if (dim < -range || dim >= range) fail("dimension {} is out of range for {} dimensions", dim, dims);
  return dim < 0 ? dim + range : dim;
}

int64_t size_of(SizesView sizes, int64_t dim) {
  if (sizes.empty()) fail("dimension {} is out of range: there are no dimensions", dim);
  return sizes[size_t(wrap_dim(dim, int64_t(sizes.size())))];
}

std::string to_string(SizesView sizes) {
  std::string text = "[";
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d) text += ',';
    text += std::to_string(sizes[d]);
  }
  return text + "]";
}

}  // namespace metaprof
