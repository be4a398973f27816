// Products of groups of rows, each with a matrix of its own: mixtures of experts.

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "meta/ops/products/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/library.h"
#include "meta/ops/views/views.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

Tensor grouped_mm(const Tensor& a, const Tensor& b, const Tensor& ends) {
  return call<"_grouped_mm">(session_of(a), a, b, ends);
}

struct Groups {
  Sizes sizes;  ///< of the result
  int64_t count, inner, rows, columns;
};

// native/GroupedMMUtils.h, create_grouped_gemm_output_tensor. Rows or columns in groups, times a matrix each; a product
// for each group of the dimension that is summed; or a product for each pair of matrices.
Groups groups_of(const Call& c, const Tensor& a, const Tensor& b) {
  const Tensor& ends = c.tensor("offs");
  const bool flat_a = a.dim() == 2, flat_b = b.dim() == 2;
  if ((!flat_a && a.dim() != 3) || (!flat_b && b.dim() != 3) || a.size(-1) != b.size(-2))
    c.error(fmt::format("expects matrices that agree on the inner size; got {} and {}", describe(a),
                        describe(b)));
  if (ends.defined() != (flat_a || flat_b))
    c.error(fmt::format("expects where groups end if there is a plain matrix, else not; got {} and {}",
                        describe(a), describe(b)));
  if (ends.defined() && (ends.dim() != 1 || ends.dtype() != DType::i32))
    c.error(fmt::format("expects ends of groups as a list of int32; got {}", describe(ends)));
  if (flat_a && flat_b)
    return {{ends.size(0), a.size(0), b.size(1)}, ends.size(0), a.size(1), a.size(0), b.size(1)};
  const int64_t count = flat_a ? b.size(0) : a.size(0);
  if (ends.defined() ? ends.size(0) != count : b.size(0) != count)
    c.error(fmt::format("{} matrices for {} groups", count, ends.defined() ? ends.size(0) : b.size(0)));
  if (flat_a) return {{a.size(0), b.size(2)}, count, a.size(1), a.size(0), b.size(2)};
  if (flat_b) return {{a.size(1), b.size(1)}, count, a.size(2), a.size(1), b.size(1)};
  return {{count, a.size(1), b.size(2)}, count, a.size(2), count * a.size(1), b.size(2)};
}

Groups groups_of(const Call& c) { return groups_of(c, c.tensor("self"), c.tensor("mat2")); }

// Rows begin at multiples of 16 bytes, which the kernel needs.
void grouped_result(Call& c, const Groups& groups, DType dtype) {
  const int64_t aligned = 16 / element_size(dtype), width = groups.sizes.back();
  const int64_t padded = (width + aligned - 1) / aligned * aligned;
  if (groups.sizes.size() == 2) {
    c.output(groups.sizes, Sizes{padded, 1}, dtype);
  } else {
    c.output(groups.sizes, Sizes{groups.sizes[1] * padded, padded, 1}, dtype);
  }
}

void grouped_mm_meta(Call& c) {
  const DType dtype = c.tensor("self").dtype();
  if (c.given("bias")) c.error("bias is not supported yet, in the framework neither");
  if (c.dtype("out_dtype", dtype) != dtype) c.error("the result has to have the dtype of self");
  grouped_result(c, groups_of(c), dtype);
}

// Each row (or each part of what is summed) is in one group. The counter of 2.11 has no formula.
FlopCount grouped_mm_flops(const Call& c) {
  const Groups groups = groups_of(c);
  return {.counted = 2 * groups.rows * groups.inner * groups.columns};
}

int generation(const Call& c) {
  return c.ask([](const Platform& platform) { return platform.hardware.sm / 10; });
}

// The one kernel for all groups (native/cuda/GroupMM.cu, ScaledGroupMM.cu) is told of each group its matrices and, if
// they have some, their scales by address, the three strides and the sizes; addresses lie in pairs. Each multiprocessor
// has copies of the matrices' descriptors (CUtensorMap, 128 bytes): what CUTLASS's get_workspace_size says on an
// emulated H200, H100 PCIe and B200.
void run_grouped_kernel(Call& c, int64_t groups, int64_t addresses, int64_t descriptors) {
  constexpr int64_t kAddress = 8, kStride = 8, kSizes = 12, kDescriptor = 128;
  const Ref<Storage> told =
      c.temporary_bytes((groups + 1) / 2 * 2 * addresses * kAddress + groups * (3 * kStride + kSizes));
  const int64_t multiprocessors =
      c.ask([](const Platform& platform) { return int64_t{platform.hardware.multiprocessors}; });
  const Ref<Storage> workspace =
      c.temporary_bytes(multiprocessors * descriptors * kDescriptor, Category::workspace);
}

// dispatch_bf16_grouped_kernel_on_tile_size: groups are taken to be equally large.
bool has_small_groups(const Tensor& a, const Tensor& b, const Groups& groups) {
  const int64_t rows = a.size(-2) / (a.dim() == 2 && b.dim() == 3 ? groups.count : 1);
  const int64_t columns = b.size(-1) / (a.dim() == 3 && b.dim() == 2 ? groups.count : 1);
  return rows <= 128 || columns <= 128;
}

// Compute capability 9.0 and 10.0 have a kernel for bf16; else the ends are read and each group is a product.
void grouped_mm_cuda(Call& c) {
  c.allocate(0);
  const Tensor &a = c.tensor("self"), &b = c.tensor("mat2");
  const int of_device = generation(c);
  if (a.dtype() == DType::bf16 && b.dtype() == DType::bf16 && (of_device == 9 || of_device == 10)) {
    const Groups groups = groups_of(c);
    const int64_t of_blackwell = has_small_groups(a, b, groups) ? 42 : 46;
    run_grouped_kernel(c, groups.count, /*addresses=*/3, /*descriptors=*/of_device == 9 ? 4 : of_blackwell);
  } else if (c.result_tensor().numel() > 0) {
    cublas_workspace(c);
  }
}

// --- Of 8 bits.

bool lies_by_columns(const Call& c, const Tensor& matrices) {
  const auto last = static_cast<size_t>(matrices.dim() - 1);
  const Sizes &strides = matrices.strides(), &sizes = matrices.sizes();
  const int64_t alignment = 16 / element_size(matrices.dtype());
  const bool columns = strides[last - 1] == 1 && strides[last] >= std::max<int64_t>(1, sizes[last - 1]);
  const bool rows = strides[last] == 1 && strides[last - 1] >= std::max<int64_t>(1, sizes[last]);
  if (!columns && !rows) c.error(fmt::format("invalid strides of {}", describe(matrices)));
  if ((columns ? strides[last] : strides[last - 1]) % alignment != 0)
    c.error(fmt::format("strides should be multiple of 16 bytes; got {}", describe(matrices)));
  return columns;
}

// _check_scales_fp8_rowwise: a scale for each row of self and each column of mat2, of each group.
void need_scale(const Call& c, const Tensor& matrices, const Tensor& scale, int64_t dim, int64_t groups) {
  const bool flat = matrices.dim() == 2;
  const bool fits =
      flat ? scale.dim() == 1 && scale.is_contiguous() && scale.size(0) == matrices.size(dim) * groups
           : scale.dim() == 2 && scale.strides()[1] == 1 && scale.size(0) == matrices.size(0) &&
                 scale.size(1) == matrices.size(dim + 1);
  if (scale.dtype() != DType::f32 || !fits)
    c.error(fmt::format("the scale {} does not go with {}", describe(scale), describe(matrices)));
}

void scaled_grouped_mm_meta(Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("mat2");
  if (c.on_cuda() && generation(c) != 9 && generation(c) != 10)
    c.error("is only supported on CUDA devices with compute capability = [9.0, 10.0]");
  const Groups groups = groups_of(c);
  if (lies_by_columns(c, a)) c.error("expected self to not be transposed");
  if (!lies_by_columns(c, b)) c.error("expected mat2 to be transposed");
  if (a.size(-1) % 16 != 0 || b.size(-2) % 16 != 0 || b.size(-1) % 16 != 0)
    c.error(fmt::format("expects sizes that are divisible by 16; got {} and {}", describe(a), describe(b)));
  if (c.given("bias") || c.given("scale_result")) c.error("bias and scale_result are not supported yet");
  for (const Tensor* matrices : {&a, &b})
    if (matrices->dtype() != DType::f8_e4m3fn)
      c.error(fmt::format("expects matrices of float8_e4m3fn, got {}", describe(*matrices)));
  const int64_t summed = a.dim() == 2 && b.dim() == 2 ? groups.count : 1;
  need_scale(c, a, c.tensor("scale_a"), 0, summed);
  need_scale(c, b, c.tensor("scale_b"), 1, summed);
  if (c.dtype("out_dtype", DType::bf16) != DType::bf16) c.error("only a result of bfloat16 is supported");
  grouped_result(c, groups, DType::bf16);
}

void scaled_grouped_mm_cuda(Call& c) {
  c.allocate(0);
  run_grouped_kernel(c, groups_of(c).count, /*addresses=*/5, /*descriptors=*/5);
}

// The columns of a matrix are what lies together.
bool has_column_major_matrices(const TensorImpl& matrix) {
  const size_t last = matrix.sizes.size() - 1;
  return matrix.strides[last - 1] == 1 && matrix.strides[last] == matrix.sizes[last - 1];
}

constexpr Op kGroupedProducts[] = {
    {.schema = "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
               "out_dtype=None) -> Tensor",
     .summary = "rows of each group · its matrix; groups end at offs",
     .meta = grouped_mm_meta,
     .host_code = {{DeviceType::cuda, grouped_mm_cuda}},
     // FunctionsManual.cpp, _grouped_mm_mat1_backward and _grouped_mm_mat2_backward
     .derivatives = {{{"self"},
                      {"mat2", "offs"},
                      [](Backward& b) {
                        if (has_column_major_matrices(*b.shape("self")))
                          return transpose(grouped_mm(b("mat2"), transpose(b.grad(), -2, -1), b("offs")), -2,
                                           -1);
                        return grouped_mm(b.grad(), transpose(b("mat2"), -2, -1), b("offs"));
                      }},
                     {{"mat2"},
                      {"self", "offs"},
                      [](Backward& b) {
                        if (has_column_major_matrices(*b.shape("mat2")))
                          return transpose(grouped_mm(transpose(b.grad(), -2, -1), b("self"), b("offs")), -2,
                                           -1);
                        return grouped_mm(transpose(b("self"), -2, -1), b.grad(), b("offs"));
                      }}},
     .flops = grouped_mm_flops,
     .examples = {"f32[6,4] f32[2,4,8] i32[2]", "f32[4,6]/1,4 f32[6,8] i32[2]", "f32[2,4,6] f32[2,6,8]"},
     .facts = {.product = true}},
    {.schema = "_scaled_grouped_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? "
               "offs=None, Tensor? bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, bool "
               "use_fast_accum=False) -> Tensor",
     .summary = "rows of each group · its matrix, in floats of 8 bits with a scale for each row and column",
     .meta = scaled_grouped_mm_meta,
     .host_code = {{DeviceType::cuda, scaled_grouped_mm_cuda}},
     .derivatives = not_differentiable,
     .flops = grouped_mm_flops,
     .examples = {"f8_e4m3fn[32,16] f8_e4m3fn[2,16,48]/768,1,16 f32[32] f32[2,48] i32[2]"},
     .facts = {.product = true}}};

}  // namespace

Tables grouped_product_operators() {
  static constexpr Records tables[] = {kGroupedProducts};
  return tables;
}

}  // namespace metaprof
