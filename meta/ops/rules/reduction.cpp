// The rule for the buffers of all reductions.

#include "meta/ops/rules/reduction.h"

#include <bit>

#include "core/rounding.h"
#include "meta/ops/rules/formulas.h"
#include "meta/platform/platform.h"

namespace metaprof {

Sizes reduced_dims(const Call&, const Value& given, int64_t count) {
  Sizes dims;
  if (given.kind() == Value::Kind::integer) {
    dims.push_back(wrap_dim(given.integer(), count));
  } else if (!given.is_none()) {
    for (int64_t dim : given.integers()) dims.push_back(wrap_dim(dim, count));
  }
  if (dims.empty() && (given.is_none() || given.kind() != Value::Kind::integer))
    for (int64_t d = 0; d < count; ++d) dims.push_back(d);
  if (count == 0) dims.clear();
  return dims;
}

Sizes reduced_sizes(SizesView sizes, SizesView dims, bool keepdim) {
  Sizes out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), int64_t(d)) != dims.end();
    if (!reduced) out.push_back(sizes[d]);
    if (reduced && keepdim) out.push_back(1);
  }
  return out;
}

namespace {

struct IteratorDim {
  int64_t size, input_stride, output_stride;  // strides in elements; output 0: reduced
};

int64_t floor_power_of_two(int64_t v) { return v > 0 ? int64_t(std::bit_floor(uint64_t(v))) : 1; }

// TensorIterator: reduced dimensions first, each group by rising input stride, neighbours joined.
std::vector<IteratorDim> iterator_dims(const Tensor& input, SizesView dims) {
  std::vector<IteratorDim> reduced, kept;
  int64_t output_stride = 1;
  for (size_t d = input.sizes().size(); d-- > 0;) {
    const int64_t size = input.sizes()[d], stride = input.strides()[d];
    if (std::find(dims.begin(), dims.end(), int64_t(d)) != dims.end()) {
      if (size != 1) reduced.push_back({size, stride, 0});
      continue;
    }
    if (size != 1) kept.push_back({size, stride, output_stride});
    output_stride *= size;
  }
  auto by_stride = [](const IteratorDim& a, const IteratorDim& b) { return a.input_stride < b.input_stride; };
  std::stable_sort(reduced.begin(), reduced.end(), by_stride);
  std::stable_sort(kept.begin(), kept.end(), by_stride);
  std::vector<IteratorDim> all;
  auto join = [&](const std::vector<IteratorDim>& group) {
    const size_t begin = all.size();
    for (const IteratorDim& d : group) {
      if (all.size() > begin && all.back().input_stride * all.back().size == d.input_stride &&
          all.back().output_stride * all.back().size == d.output_stride) {
        all.back().size *= d.size;
      } else {
        all.push_back(d);
      }
    }
  };
  join(reduced);
  join(kept);
  return all;
}

// How threads are laid over outputs and inputs, where several blocks may reduce one output.
struct ReductionLayout {
  int64_t values = 0;           // per thread, if one block reduces an output
  int64_t grid = 0;             // blocks for all outputs
  int64_t threads = 1;          // of a block
  int64_t bytes_per_block = 0;  // of the buffer
};

// Reduce.cuh, setReduceConfig. Nothing: one block reduces each output on every device. Blocks that read complex numbers of
// 16 bytes have half as many threads (mnt_wrapper).
std::optional<ReductionLayout> reduction_layout(std::span<const IteratorDim> dims, int64_t offset,
                                                int64_t element, const ReductionKernel& kernel) {
  int64_t inputs = 1, outputs = 1;
  size_t reduced = 0;
  for (const IteratorDim& d : dims) {
    (d.output_stride == 0 ? inputs : outputs) *= d.size;
    reduced += d.output_stride == 0;
  }
  if (reduced == 0) return std::nullopt;
  const bool kept_any = reduced < dims.size();
  const bool on_fastest = !kept_any || dims[0].input_stride < dims[reduced].input_stride;
  int64_t dim0 = on_fastest ? inputs : outputs, dim1 = on_fastest ? outputs : inputs;
  int64_t output_vector = 1;
  if ((on_fastest ? dims[0] : dims[reduced]).input_stride == 1) {
    if (on_fastest) {
      if (dim0 >= 128 && dims.size() == 1 && kernel.values_per_thread >= 4) dim0 /= kernel.vector;
    } else {
      output_vector = 4;
      auto misfits = [&](int64_t vector) {
        if (dims[reduced].size % vector || offset % vector) return true;
        for (size_t i = 0; i < dims.size(); ++i)
          if (i != reduced && dims[i].input_stride % vector) return true;
        return false;
      };
      while (output_vector > 1 && misfits(output_vector)) output_vector /= 2;
      dim0 /= output_vector;
    }
  }
  const int64_t threads = (element == 16 ? 256 : 512) / output_vector;
  const int64_t power0 = dim0 < threads ? floor_power_of_two(dim0) : threads;
  const int64_t power1 = dim1 < threads ? floor_power_of_two(dim1) : threads;
  int64_t width = std::min<int64_t>(power0, 32);
  const int64_t height = std::min(power1, threads / width);
  width = std::min(power0, threads / height);
  int64_t step_input = on_fastest ? width : 1, step_output = on_fastest ? 1 : width;
  const bool across_warps = divide_up(inputs, step_input) >= std::min<int64_t>(height * 16, 256);
  (across_warps ? step_input : step_output) *= height;
  const int64_t values = divide_up(inputs, step_input);
  const int64_t grid = divide_up(outputs / output_vector, step_output);
  if (!across_warps || values < 256) return std::nullopt;
  return ReductionLayout{
      .values = values,
      .grid = grid,
      .threads = width * height,
      .bytes_per_block = kernel.accumulator * outputs * (on_fastest ? 1 : width * output_vector)};
}

// The same function: of as many blocks as the device runs at once; 0: one block does it.
int64_t reduction_bytes(const ReductionLayout& layout, const Hardware& device) {
  const auto& [values, grid, threads, bytes_per_block] = layout;
  const int64_t target = device.multiprocessors * (device.threads_per_multiprocessor / threads);
  if (grid > target) return 0;
  const int64_t blocks =
      std::max(std::min(divide_up(target, grid), divide_up(values, 16)), divide_up(values, 256));
  return blocks > 1 ? bytes_per_block * blocks : 0;
}

constexpr int64_t kMoreThanAnyDevice = int64_t{1} << 44;  // bytes: 16 TiB

// TensorIterator::split: the dimension that spans most bytes is halved until 32-bit indexing can address the
// part.
void halve_and_ask(Call& call, std::vector<IteratorDim> dims, int64_t offset, int64_t element,
                   const ReductionKernel& kernel) {
  int64_t reach = 1, widest_reach = -1;
  size_t widest = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t extent = multiply(dims[i].size - 1, dims[i].input_stride);
    reach += extent;
    if (extent > widest_reach) {
      widest_reach = extent;
      widest = i;
    }
  }
  if (reach > INT32_MAX / element && !dims.empty() && dims[widest].size > 1) {
    std::vector<IteratorDim> first = dims;
    first[widest].size = dims[widest].size / 2;
    std::vector<IteratorDim> second = dims;
    second[widest].size = dims[widest].size - first[widest].size;
    halve_and_ask(call, std::move(first), offset, element, kernel);
    // No device holds such an input: memory has run out before this kernel, and one part stands for all.
    if (reach > kMoreThanAnyDevice / element) return;
    halve_and_ask(call, std::move(second), offset, element, kernel);
    return;
  }
  const std::optional<ReductionLayout> layout = reduction_layout(dims, offset, element, kernel);
  if (!layout) return;
  const auto bytes = [layout = *layout](const Platform& platform) {
    return reduction_bytes(layout, platform.hardware);
  };
  if (!call.ask([=](const Platform& platform) { return bytes(platform) > 0; })) return;
  auto buffer = call.session.allocate_asking(call.device(), Category::temporary, bytes);
  auto semaphores = call.temporary_bytes(4 * layout->grid);
}

}  // namespace

void reduction_buffers(Call& call, const Tensor& input, SizesView reduced, const Tensor& result,
                       const ReductionKernel& kernel) {
  if (!input.is_cuda() || input.numel() == 0) return;
  const int64_t element = element_size(input.dtype());
  const std::vector<IteratorDim> dims = iterator_dims(input, reduced);
  // Parts that do not fit the result's elements are collected in a block of their own.
  Ref<Storage> accumulated;
  if (span_of(input.sizes(), input.strides()) > INT32_MAX / element &&
      kernel.accumulator > element_size(result.dtype()))
    accumulated = call.temporary_bytes(multiply(kernel.accumulator, result.numel()));
  halve_and_ask(call, dims, input->offset, element, kernel);
}

void reduced_output(Call& c, const Tensor& input, const Value& dims, bool keepdim, DType dtype) {
  c.output(reduced_sizes(input.sizes(), reduced_dims(c, dims, input.dim()), keepdim), dtype);
}

Tensor reduction_input(Call&, const Tensor& self, DType result) {
  const bool in_kernel = is_reduced_floating(self.dtype()) && result == DType::f32 && self.is_cuda();
  return in_kernel ? self : to(self, result);
}

void sum_into_result(Call& c, const Tensor& self, const Value& dims) {
  c.allocate(0);
  const DType dtype = c.result_tensor().dtype();
  const Tensor input = reduction_input(c, self, dtype);
  const ReductionKernel kernel = {.accumulator = accumulator_bytes(dtype),
                                  .vector = element_size(input.dtype()) == 2 ? 8 : 4};
  reduction_buffers(c, input, reduced_dims(c, dims, self.dim()), c.result_tensor(), kernel);
}

int64_t accumulator_bytes(DType dtype) { return std::max<int64_t>(4, element_size(dtype)); }

Tensor restore_dims(const Tensor& reduced, const Value& given, int64_t count) {
  if (count == 0) return reduced;
  Sizes dims;
  if (given.kind() == Value::Kind::integer) {
    dims.push_back(wrap_dim(given.integer(), count));
  } else if (!given.is_none()) {
    for (int64_t d : given.integers()) dims.push_back(wrap_dim(d, count));
  }
  std::sort(dims.begin(), dims.end());
  Tensor wide = reduced;
  for (int64_t d : dims) wide = unsqueeze(wide, d);
  return wide;
}

int64_t reduced_count(SizesView sizes, const Value& dims) {
  if (sizes.empty()) return 1;
  const auto count = int64_t(sizes.size());
  if (dims.kind() == Value::Kind::integer) return sizes[size_t(wrap_dim(dims.integer(), count))];
  if (dims.is_none() || dims.integers().empty()) return numel(sizes);
  int64_t product = 1;
  for (int64_t d : dims.integers()) product *= sizes[size_t(wrap_dim(d, count))];
  return product;
}

}  // namespace metaprof
