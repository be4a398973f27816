// The three transforms that cuFFT (on the CPU: MKL) computes (aten/src/ATen/native/cuda/SpectralOps.cpp,
// PyTorch 2.11). cuFFT's own plans are cached outside the allocator.

#include "meta/ops/fourier/fourier.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/fourier/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {

Tensor fft_c2c(const Tensor& self, SizesView dims, int64_t normalization, bool forward) {
  return call<"_fft_c2c">(session_of(self), self, dims, normalization, forward);
}
Tensor fft_r2c(const Tensor& self, SizesView dims, int64_t normalization, bool onesided) {
  return call<"_fft_r2c">(session_of(self), self, dims, normalization, onesided);
}
Tensor fft_c2r(const Tensor& self, SizesView dims, int64_t normalization, int64_t last_size) {
  return call<"_fft_c2r">(session_of(self), self, dims, normalization, last_size);
}

namespace {

constexpr size_t kMostDims = 3;  // of one cuFFT plan

Sizes wrapped_dims(const Call& c) {
  Sizes dims;
  for (int64_t d : c.ints("dim")) dims.push_back(wrap_dim(d, c.tensor("self").dim()));
  return dims;
}

// Batch dimensions first, by falling stride; then those that are transformed.
Sizes batch_order(SizesView strides, SizesView dims) {
  Sizes order;
  for (size_t d = 0; d < strides.size(); ++d)
    if (std::find(dims.begin(), dims.end(), int64_t(d)) == dims.end()) order.push_back(int64_t(d));
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return strides[size_t(a)] > strides[size_t(b)]; });
  order.append(dims.begin(), dims.end());
  return order;
}

// The result of one plan is row-major in that order, seen in the order of the input.
Sizes plan_strides(SizesView in_strides, SizesView out_sizes, SizesView dims) {
  const Sizes order = batch_order(in_strides, dims);
  Sizes strides(out_sizes.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[size_t(order[i])] = step;
    step = multiply(step, out_sizes[size_t(order[i])]);
  }
  return strides;
}

// All dimensions in one plan of cuFFT; a transform that begins with the first two is faster in two
// (use_optimized_cufft_path).
bool in_one_plan(SizesView dims) {
  return dims.size() <= kMostDims && !(dims.size() >= 2 && dims[0] == 0 && dims[1] == 1);
}

// cuFFT can walk these strides: each a multiple of the one behind it (CuFFTUtils.h, as_cufft_embed).
bool can_be_embedded(const Tensor& batched) {
  const Sizes &sizes = batched.sizes(), &strides = batched.strides();
  int64_t last = strides.back();
  if (last <= 0 || (sizes[0] != 1 && strides[0] == 0)) return false;
  for (size_t i = sizes.size() - 2; i > 0; --i) {
    if (sizes[i] == 1) continue;
    if (strides[i] <= 0 || strides[i] % last != 0) return false;
    last = strides[i];
  }
  return true;
}

// One plan: the input as a batch, copied where it cannot be seen so.
void run_plan(const Tensor& input, SizesView dims) {
  const Sizes order = batch_order(input.strides(), dims);
  Sizes batched{-1};
  for (int64_t d : dims) batched.push_back(input.size(d));
  const Tensor batch = reshape(permute(input, order), batched);
  if (!can_be_embedded(batch)) const Tensor copy = clone(batch, MemoryFormat::contiguous);
}

/// Plans of up to three dimensions each until all are done: buffers in turns.
struct Plans {
  std::vector<Sizes> dims, strides;  ///< of each plan: its dimensions, the strides of its result
};

Plans plan_c2c(SizesView sizes, Sizes strides, Sizes dims) {
  Plans plans;
  while (!dims.empty()) {
    std::sort(dims.begin(), dims.end(),
              [&](int64_t a, int64_t b) { return strides[size_t(a)] > strides[size_t(b)]; });
    const size_t count = std::min(kMostDims, dims.size());
    const Sizes now(dims.end() - count, dims.end());
    strides = plan_strides(strides, sizes, now);
    plans.dims.push_back(now);
    plans.strides.push_back(strides);
    dims.resize(dims.size() - count);
  }
  return plans;
}

// Runs the plans one after the other from `input`; returns the storage of the last result. `buffer` is the
// first one's; a second one is made when it is needed.
Ref<Storage> run_plans(Call& c, Tensor input, SizesView sizes, const Plans& plans, DType dtype,
                       Ref<Storage> buffer, Ref<Storage>& other) {
  const int64_t bytes = multiply(numel(sizes), element_size(dtype));
  for (size_t i = 0; i < plans.dims.size(); ++i) {
    if (i > 0) {
      if (!other) other = c.session.allocate(c.device(), bytes);
      std::swap(buffer, other);
    }
    run_plan(input, plans.dims[i]);
    input = Tensor(new TensorImpl(sizes, plans.strides[i], dtype, c.device()));
    input->storage = buffer;
  }
  return buffer;
}

// --- complex to complex

void c2c_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes dims = wrapped_dims(c);
  if (dims.empty()) {
    c.output_like(self);
    return;
  }
  const Plans plans = plan_c2c(self.sizes(), self.strides(), dims);
  c.output(self.sizes(), plans.strides.back(), self.dtype());
}

void c2c_kernel(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes dims = wrapped_dims(c);
  if (dims.empty() || self.numel() == 0) return c.allocate_all();
  const Plans plans = plan_c2c(self.sizes(), self.strides(), dims);
  Ref<Storage> first = c.session.allocate(c.device(), multiply(self.numel(), element_size(self.dtype())));
  Ref<Storage> other;
  c.result_tensor()->storage = run_plans(c, self, self.sizes(), plans, self.dtype(), std::move(first), other);
}

// --- real to complex: where one plan cannot do it, the last dimension first, then the rest

Sizes halved(const Call& c, const Sizes& dims) {
  Sizes sizes = c.tensor("self").sizes();
  int64_t& last = sizes[size_t(dims.back())];
  last = last / 2 + 1;
  return sizes;
}

void r2c_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes dims = wrapped_dims(c);
  const bool onesided = c.boolean("onesided");
  const DType dtype = complex_type(self.dtype());
  const Sizes half = halved(c, dims), &sizes = onesided ? half : self.sizes();
  const Sizes last{dims.back()}, rest(dims.begin(), dims.end() - 1);
  if (in_one_plan(dims)) {
    c.output(sizes, plan_strides(self.strides(), sizes, dims), dtype);
    return;
  }
  const Sizes strides = plan_strides(self.strides(), rest.empty() ? sizes : half, last);
  if (!onesided) {
    c.output(sizes, dtype);
  } else {
    c.output(sizes, plan_c2c(half, strides, rest).strides.back(), dtype);
  }
}

void r2c_kernel(Call& c) {
  const Tensor& self = c.tensor("self");
  if (c.result_tensor().numel() == 0) return c.allocate_all();
  const Sizes dims = wrapped_dims(c), half = halved(c, dims), last{dims.back()},
              rest(dims.begin(), dims.end() - 1);
  const DType dtype = c.result_tensor().dtype();
  const int64_t whole = multiply(c.result_tensor().numel(), element_size(dtype));
  Ref<Storage> output = c.session.allocate(c.device(), whole);
  if (in_one_plan(dims)) {
    run_plan(self, dims);
    c.result_tensor()->storage = output;
    return;
  }
  run_plan(self, last);
  // The other buffer is made for the half; a result that is not one-sided is written back into it, grown.
  const int64_t part = multiply(numel(half), element_size(dtype));
  Ref<Storage> working = c.session.allocate(c.device(), part);
  Tensor input(new TensorImpl(half, plan_strides(self.strides(), half, last), dtype, c.device()));
  input->storage = output;
  const Plans plans = plan_c2c(half, input.strides(), rest);
  output = run_plans(c, input, half, plans, dtype, std::move(working), output);
  input.reset();
  c.result_tensor()->storage = output;
}

Gradients r2c_gradient(Backward& b) {
  const Sizes &sizes = b.sizes("self"), &dims = b.ints("dim");
  const int64_t normalization = b.integer("normalization");
  auto real = [&](const Tensor& tensor) -> Tensor { return call<"real">(b.session, tensor); };
  if (!b.boolean("onesided")) return {real(fft_c2c(b.grad(), dims, normalization, false))};
  const int64_t last = wrap_dim(dims.back(), int64_t(sizes.size()));
  const int64_t have = b.grad().size(last), want = sizes[size_t(last)];
  if (want <= have) return {real(fft_c2c(b.grad(), dims, normalization, false))};
  Sizes full = b.grad().sizes();
  full[size_t(last)] = want;
  const Tensor padded = call<"new_zeros">(b.session, b.grad(), full);
  copy_(call<"slice.Tensor">(b.session, padded, last, 0, have), b.grad());
  return {real(fft_c2c(padded, dims, normalization, false))};
}

// --- complex to real: where one plan cannot do it, all but the last dimension, then that one

void c2r_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes dims = wrapped_dims(c), last{dims.back()}, rest(dims.begin(), dims.end() - 1);
  Sizes sizes = self.sizes(), strides = contiguous_strides(self.sizes());
  sizes[size_t(dims.back())] = c.integer("last_dim_size");
  const bool one = in_one_plan(dims);
  if (!one) strides = plan_c2c(self.sizes(), self.strides(), rest).strides.back();
  c.output(sizes, plan_strides(strides, sizes, one ? dims : last), real_type(self.dtype()));
}

// cuFFT may overwrite what it reads, so it always works on a copy.
void c2r_kernel(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes dims = wrapped_dims(c), last{dims.back()}, rest(dims.begin(), dims.end() - 1);
  if (c.result_tensor().numel() == 0) return c.allocate_all();
  c.allocate(0);
  if (in_one_plan(dims)) {
    const Tensor copy = clone(self, MemoryFormat::contiguous);
    run_plan(copy, dims);
  } else {
    const Tensor transformed = fft_c2c(self, rest, 0, false);
    run_plan(transformed, last);
  }
}

Gradients c2r_gradient(Backward& b) {
  const Sizes& dims = b.ints("dim");
  const Tensor gradient = fft_r2c(b.grad(), dims, b.integer("normalization"), true);
  const int64_t last = wrap_dim(dims.back(), gradient.dim());
  // The inner part stands for two conjugate halves.
  const int64_t twice = b.grad().size(last) - gradient.size(last);
  if (twice > 0) {
    const Tensor inner = call<"narrow">(b.session, gradient, last, 1, twice);
    call<"mul_.Scalar">(b.session, inner, 2);
  }
  return {gradient};
}

// 5·n·log2(n) per transform, as is usual for a fast transform of n complex numbers.
FlopCount fft_flops(const Call& c) {
  const Tensor& self = c.tensor("self");
  double per_element = 0;
  for (int64_t d : wrapped_dims(c)) per_element += 5 * std::log2(double(std::max<int64_t>(1, self.size(d))));
  return {.own = static_cast<int64_t>(per_element * double(self.numel()))};
}

constexpr Op kFourier[] = {
    {.schema = "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
     .summary = "Fourier transform of complex numbers",
     .meta = c2c_meta,
     .host_code = {{DeviceType::cuda, c2c_kernel}},
     .derivatives = {{{"self"},
                      {},
                      [](Backward& b) -> Gradients {
                        return {fft_c2c(b.grad(), b.ints("dim"), b.integer("normalization"),
                                        !b.boolean("forward"))};
                      }}},
     .flops = fft_flops,
     .examples = {"c64[2,8] (1) 0 True"},
     .facts = {.takes = "dim in self", .node = "FftC2CBackward0"}},
    {.schema = "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
     .summary = "Fourier transform of real numbers",
     .meta = r2c_meta,
     .host_code = {{DeviceType::cuda, r2c_kernel}},
     .derivatives = {{{"self"}, {"self"}, r2c_gradient}},
     .flops = fft_flops,
     .examples = {"f32[2,8] (1) 0 True", "f32[2,8] (0 1) 0 False"},
     .facts = {.takes = "dim.length > 0, dim in self", .node = "FftR2CBackward0"}},
    {.schema = "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
     .summary = "inverse Fourier transform to real numbers",
     .meta = c2r_meta,
     .host_code = {{DeviceType::cuda, c2r_kernel}},
     .derivatives = {{{"self"}, {}, c2r_gradient}},
     .flops = fft_flops,
     .examples = {"c64[2,5] (1) 0 8"},
     .facts = {.takes = "dim.length > 0, dim in self, last_dim_size > 0", .node = "FftC2RBackward0"}}};

}  // namespace

Tables fourier_operators() {
  static constexpr Records tables[] = {kFourier};
  return tables;
}

}  // namespace metaprof
