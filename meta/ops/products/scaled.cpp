// Products of floats of 8 bits with scales beside them (aten/src/ATen/native/cuda/ScaledBlas.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "meta/ops/products/family.h"
#include "meta/ops/products/matmul.h"
#include "meta/ops/rules/estimated.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/into_out.h"
#include "meta/ops/rules/library.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

// What a scale is for; the numbers are those of at::blas::ScalingType. Scales of blocks of 16 and 32 elements, which are in
// dtypes of their own, are not modelled.
enum class Scaling : uint8_t { tensor = 0, row = 1, block_128 = 4, square_128 = 5 };

// One factor, as the scale of its rows sees it: the second one transposed.
struct Factor {
  DType dtype;
  int64_t outer, inner;
};

struct ScaledProduct {
  Factor a, b;
};

bool is_float8(DType dtype) { return is_floating(dtype) && element_size(dtype) == 1; }

int64_t blocks(int64_t elements, int64_t size) { return (elements + size - 1) / size; }
int64_t round_up(int64_t number, int64_t multiple) { return blocks(number, multiple) * multiple; }

ScaledProduct product_of(const Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("mat2");
  if (a.dim() != 2 || b.dim() != 2 || a.size(1) != b.size(0))
    c.error(fmt::format("expects two matrices that agree on the inner size; got {} and {}", describe(a),
                        describe(b)));
  return {{a.dtype(), a.size(0), a.size(1)}, {b.dtype(), b.size(1), b.size(0)}};
}

// check_size_stride: the stride of a dimension of size 1 is anything.
bool lies(const Tensor& scale, size_t dim, int64_t size, int64_t stride) {
  return scale.sizes()[dim] == size && (size <= 1 || scale.strides()[dim] == stride);
}

bool fits(Scaling scaling, const Factor& factor, const Tensor& scale) {
  const bool floats = scale.dtype() == DType::f32 && is_float8(factor.dtype);
  const bool matrix = floats && scale.dim() == 2;
  switch (scaling) {
    case Scaling::tensor: return floats && scale.numel() == 1;
    case Scaling::row:
      return matrix && scale.size(0) == factor.outer && scale.size(1) == 1 && scale.is_contiguous();
    case Scaling::block_128:
      return matrix && lies(scale, 0, factor.outer, 1) &&
             lies(scale, 1, blocks(factor.inner, 128), factor.outer);
    case Scaling::square_128:
      return matrix && lies(scale, 0, blocks(factor.outer, 128), blocks(factor.inner, 128)) &&
             lies(scale, 1, blocks(factor.inner, 128), 1);
  }
  return false;
}

struct Scalings {
  Scaling a, b;
};

// _scaled_mm_out_cuda: the first that fits.
constexpr Scalings kScalings[] = {
    {Scaling::tensor, Scaling::tensor},        {Scaling::row, Scaling::row},
    {Scaling::square_128, Scaling::block_128}, {Scaling::block_128, Scaling::square_128},
    {Scaling::block_128, Scaling::block_128},
};

// The second scale lies as its factor does.
Tensor as_of_rows(const Tensor& scale) {
  if (scale.dim() != 2) return scale;
  return alias(scale, Sizes{scale.size(1), scale.size(0)}, Sizes{scale.strides()[1], scale.strides()[0]},
               scale->offset);
}

Scalings scalings_of(const Call& c) {
  const ScaledProduct product = product_of(c);
  const Tensor &a = c.tensor("scale_a"), &b = c.tensor("scale_b");
  for (const Scalings& scalings : kScalings)
    if (fits(scalings.a, product.a, a) && fits(scalings.b, product.b, as_of_rows(b))) return scalings;
  c.error(fmt::format("invalid scaling configuration: the scales {} and {} fit {} and {} in no way",
                      describe(a), describe(b), describe(c.tensor("self")), describe(c.tensor("mat2"))));
}

int capability(const Call& c) {
  return c.ask([](const Platform& platform) { return platform.hardware.sm; });
}

void need_device(const Call& c) {
  if (!c.on_cuda()) return;
  if (const int sm = capability(c); sm < 90 && sm != 89)
    c.error("is only supported on CUDA devices with compute capability >= 9.0 or 8.9");
}

void need_sizes(const Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("mat2");
  if (a.size(1) % 16 != 0)
    c.error(fmt::format("expects a trailing dimension that is divisible by 16; got {}", describe(a)));
  if (b.size(1) % 16 != 0) c.error(fmt::format("mat2 must be divisible by 16; got {}", describe(b)));
}

void need_types(const Call& c, DType out) {
  const DType a = c.tensor("self").dtype(), b = c.tensor("mat2").dtype();
  for (const DType dtype : {a, b})
    if (!is_float8(dtype)) c.error(fmt::format("expects matrices of float8, got {}", long_name(dtype)));
  if (a == DType::f8_e5m2 && b == DType::f8_e5m2)
    c.error("multiplication of two float8_e5m2 matrices is not supported");
  const Tensor& bias = c.tensor("bias");
  if (!bias.defined()) return;
  if (bias.numel() != c.tensor("mat2").size(1))
    c.error(fmt::format("bias must be size {} but got {}", c.tensor("mat2").size(1), bias.numel()));
  if (out == DType::f32) c.error("bias is not supported when out_dtype is set to float32");
  const bool half = bias.dtype() == DType::f16, brain = bias.dtype() == DType::bf16;
  if ((!half && !brain) || (out == DType::bf16 && !brain) || (out == DType::f16 && !half))
    c.error(
        fmt::format("bias of {} does not go with a result of {}", long_name(bias.dtype()), long_name(out)));
}

bool is_empty(const Call& c) { return c.tensor("self").numel() == 0 || c.tensor("mat2").numel() == 0; }

// cublasCommonArgs: until Blackwell the first factor has to lie by rows and the second by columns.
void need_layouts(const Call& c) {
  if (!c.on_cuda() || is_empty(c) || capability(c) >= 100) return;
  const Tensor &a = c.tensor("self"), &b = c.tensor("mat2");
  if (a.strides()[1] != 1 || b.strides()[0] != 1)
    c.error("only multiplication of row-major and column-major matrices is supported by cuBLASLt");
}

void scaled_mm_meta(Call& c) {
  const DType out = c.dtype("out_dtype", c.tensor("self").dtype());
  const ScaledProduct product = product_of(c);
  need_device(c);
  (void)scalings_of(c);
  need_sizes(c);
  need_types(c, out);
  need_layouts(c);
  c.output(Sizes{product.a.outer, product.b.outer}, out);
}

// --- Scales of rows where cuBLASLt does not take them: kernels of CUTLASS (native/cuda/RowwiseScaledMM.cu).

bool goes_to_cutlass(const Call& c, const Scalings& scalings) {
  const int sm = capability(c);
  return scalings.a == Scaling::row && (sm < 90 || sm >= 100);
}

// dispatch_fp8_rowwise_kernel_on_cluster_size_and_transpose, the cases in which the factors change places.
bool changes_places(int64_t rows, int64_t columns) {
  const int64_t m = round_up(rows, 64), n = round_up(columns, 64);
  if (m == 64 && n >= 3072) return false;
  if (n == 64 && m >= 3072) return true;
  if (m == 192 && n >= 4096) return true;
  if (n == 192 && m >= 4096) return false;
  const bool odd_m = m % 256 > 0, odd_n = n % 256 > 0;
  if (odd_m != odd_n && m * n <= int64_t{4096} * 4096) return odd_m;
  if (odd_m && odd_n) return (m <= n) != (m * n <= int64_t{1024} * 1024);
  return m < 4096 || n < 4096 || m < n;
}

// A list of scales is copied to one whose length 256 divides.
void run_on_blackwell(Call& c, const ScaledProduct& product) {
  const bool other_way = capability(c) < 120 && changes_places(product.a.outer, product.b.outer);
  const int64_t rows = other_way ? product.b.outer : product.a.outer;
  if (rows % 256 != 0) (void)c.temporary(Sizes{round_up(rows, 256), 1}, DType::f32);
}

// A tile of the result, how much of what is summed it takes at once, and how many warps hold sums of the same elements.
struct Tile {
  int64_t rows, columns, depth, sums;
};

// dispatch_fp8_rowwise_kernel_sm89
constexpr Tile tile_on_ada(int64_t rows) {
  if (rows <= 16) return {16, 64, 128, 2};
  if (rows <= 32) return {32, 64, 128, 2};
  if (rows <= 64) return {64, 64, 128, 2};
  if (rows <= 256) return {64, 128, 128, 2};
  return {128, 128, 64, 1};
}

// "Stream-K" divides tiles between blocks, which hand on what they have summed: at most two blocks of each
// multiprocessor do, or one for each piece of the work. How many CUTLASS takes follows from more than that, so it is an
// estimate, of the most.
void run_on_ada(Call& c, const ScaledProduct& product) {
  const Tile tile = tile_on_ada(product.a.outer);
  const int64_t pieces = blocks(product.a.outer, tile.rows) * blocks(product.b.outer, tile.columns) *
                         blocks(product.a.inner, tile.depth);
  const int64_t multiprocessors =
      c.ask([](const Platform& platform) { return int64_t{platform.hardware.multiprocessors}; });
  const int64_t most = std::clamp<int64_t>(pieces, 2, 2 * multiprocessors);
  const int64_t bytes = most * tile.rows * tile.columns * tile.sums * element_size(DType::f32);
  const Ref<Storage> workspace = estimated(c.session, c.temporary_bytes(bytes, Category::workspace));
}

void run_scaled_mm(Call& c, const Scalings& scalings) {
  if (is_empty(c)) {
    if (c.tensor("self").size(1) == 0) call<"zero_">(c.session, c.result_tensor());
    return;
  }
  if (goes_to_cutlass(c, scalings))
    return capability(c) >= 100 ? run_on_blackwell(c, product_of(c)) : run_on_ada(c, product_of(c));
  const BlasOperands operands(c, c.tensor("self"), c.tensor("mat2"));
  cublas_lt_workspace(c);
}

void scaled_mm_cuda(Call& c) {
  c.allocate(0);
  run_scaled_mm(c, scalings_of(c));
}

void scaled_mm_into_out_cuda(Call& c) { run_scaled_mm(c, scalings_of(c)); }

FlopCount scaled_mm_flops(const Call& c) {
  const ScaledProduct product = product_of(c);
  return {.counted = 2 * product.a.outer * product.a.inner * product.b.outer};
}

// --- The second interface (torch.nn.functional.scaled_mm), which says what each scale is for.

constexpr Scalings kNamedScalings[] = {
    {Scaling::tensor, Scaling::tensor},        {Scaling::row, Scaling::row},
    {Scaling::block_128, Scaling::square_128}, {Scaling::square_128, Scaling::block_128},
    {Scaling::block_128, Scaling::block_128},
};

bool names(const Sizes& recipe, Scaling scaling) {
  return recipe.size() == 1 && recipe[0] == static_cast<int64_t>(scaling);
}

// What a scale is here: squares of 128 are by columns, their rows rounded up to four.
bool fits_as_named(Scaling scaling, const Factor& factor, const Tensor& scale) {
  const bool floats = scale.dtype() == DType::f32 && is_float8(factor.dtype);
  const int64_t inner = blocks(factor.inner, 128);
  switch (scaling) {
    case Scaling::row: return floats && scale.numel() == factor.outer;
    case Scaling::square_128:
      return floats && scale.dim() == 2 && lies(scale, 0, round_up(inner, 4), 1) &&
             lies(scale, 1, blocks(factor.outer, 128), round_up(inner, 4));
    default: return fits(scaling, factor, scale);
  }
}

Scalings named_scalings(const Call& c) {
  const ScaledProduct product = product_of(c);
  if (c.tensors("scale_a").size() == 1 && c.tensors("scale_b").size() == 1)
    for (const Scalings& scalings : kNamedScalings)
      if (names(c.ints("recipe_a"), scalings.a) && names(c.ints("recipe_b"), scalings.b) &&
          fits_as_named(scalings.a, product.a, c.tensors("scale_a")[0]) &&
          fits_as_named(scalings.b, product.b, c.tensors("scale_b")[0]))
        return scalings;
  c.error("invalid scaling configuration: the scales and their recipes do not go with the matrices");
}

void scaled_mm_v2_meta(Call& c) {
  const DType out = c.dtype("out_dtype", DType::bf16);
  const ScaledProduct product = product_of(c);
  need_device(c);
  const Scalings scalings = named_scalings(c);
  if (c.on_cuda() && capability(c) / 10 != 9 && scalings.a != scalings.b)
    c.error("DeepSeek style (1x128, 128x128) scaling only supported in CUDA for SM90");
  need_sizes(c);
  need_types(c, out);
  need_layouts(c);
  c.output(Sizes{product.a.outer, product.b.outer}, out);
}

void scaled_mm_v2_cuda(Call& c) {
  c.allocate(0);
  run_scaled_mm(c, named_scalings(c));
}

constexpr Op kScaledProducts[] = {
    {.schema = "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
               "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
     .summary = "scale_a·self · scale_b·mat2 + bias, in floats of 8 bits",
     .meta = scaled_mm_meta,
     .host_code = {{DeviceType::cuda, scaled_mm_cuda}},
     .derivatives = not_differentiable,
     .flops = scaled_mm_flops,
     .examples = {"f8_e4m3fn[16,32] f8_e4m3fn[32,16]/1,32 f32[] f32[] None None 15"},
     .facts = {.product = true}},
    {.schema = "_scaled_mm.out(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
               "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False, *, "
               "Tensor(a!) out) -> Tensor(a!)",
     .summary = "out := scale_a·self · scale_b·mat2 + bias, in floats of 8 bits",
     .meta = into_out<scaled_mm_meta>,
     .host_code = {{DeviceType::cuda, scaled_mm_into_out_cuda}},
     .derivatives = not_differentiable,
     .flops = scaled_mm_flops,
     .examples = {"f8_e4m3fn[16,32] f8_e4m3fn[32,16]/1,32 f32[] f32[] None None 15 False bf16[16,16]"},
     .facts = {.product = true}},
    {.schema = "_scaled_mm_v2(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, "
               "Tensor[] scale_b, int[] recipe_b, int[] swizzle_b, Tensor? bias, ScalarType? out_dtype, "
               "int[] contraction_dim=[], bool use_fast_accum=False) -> Tensor",
     .summary = "scale_a·self · scale_b·mat2 + bias; recipes say what each scale is for",
     .meta = scaled_mm_v2_meta,
     .host_code = {{DeviceType::cuda, scaled_mm_v2_cuda}},
     .derivatives = not_differentiable,
     .flops = scaled_mm_flops,
     .examples = {"f8_e4m3fn[16,32] f8_e4m3fn[32,16]/1,32 (f32[]) (0) (0) (f32[]) (0) (0) None 15"},
     .facts = {.product = true}}};

}  // namespace

Tables scaled_product_operators() {
  static constexpr Records tables[] = {kScaledProducts};
  return tables;
}

}  // namespace metaprof
