// Products of groups of rows, each with a matrix of its own: mixtures of experts.

#include <fmt/format.h>

#include "core/error.h"
#include "meta/ops/products/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/library.h"
#include "meta/ops/views/views.h"

namespace metaprof {
namespace {

Tensor grouped_mm(const Tensor& a, const Tensor& b, const Tensor& ends) {
  return call<"_grouped_mm">(session_of(a), a, b, ends);
}

struct Groups {
  Sizes sizes;  ///< of the result
  int64_t inner, rows, columns;
};

// native/GroupedMMUtils.h, create_grouped_gemm_output_tensor. Rows in groups times a matrix each; or a product for
// each group of the dimension that is summed.
Groups groups_of(const Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("mat2"), &ends = c.tensor("offs");
  const bool summed = a.dim() == 2 && b.dim() == 2, of_rows = a.dim() == 2 && b.dim() == 3;
  if (!(summed || of_rows) || !ends.defined() || ends.dim() != 1 || a.size(-1) != b.size(-2))
    c.error(fmt::format("expects rows and a matrix for each group, and where groups end; got {}, {} and {}",
                        describe(a), describe(b), describe(ends)));
  if (of_rows && b.size(0) != ends.size(0))
    c.error(fmt::format("{} matrices for {} groups", b.size(0), ends.size(0)));
  if (summed) return {{ends.size(0), a.size(0), b.size(1)}, a.size(1), a.size(0), b.size(1)};
  return {{a.size(0), b.size(2)}, a.size(1), a.size(0), b.size(2)};
}

// Rows begin at multiples of 16 bytes, which the kernel needs.
void grouped_mm_meta(Call& c) {
  const Groups groups = groups_of(c);
  const DType dtype = c.dtype("out_dtype", c.tensor("self").dtype());
  const int64_t aligned = 16 / element_size(dtype), width = groups.sizes.back();
  const int64_t padded = (width + aligned - 1) / aligned * aligned;
  if (groups.sizes.size() == 2) {
    c.output(groups.sizes, Sizes{padded, 1}, dtype);
  } else {
    c.output(groups.sizes, Sizes{groups.sizes[1] * padded, padded, 1}, dtype);
  }
}

// Each row (or each part of what is summed) is in one group. The counter of 2.11 has no formula.
FlopCount grouped_mm_flops(const Call& c) {
  const Groups groups = groups_of(c);
  return {.counted = 2 * groups.rows * groups.inner * groups.columns};
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
     .host_code = {},
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
     .examples = {"f32[6,4] f32[2,4,8] i32[2]"},
     .facts = {.product = true}}};

}  // namespace

Tables grouped_product_operators() {
  static constexpr Records tables[] = {kGroupedProducts};
  return tables;
}

}  // namespace metaprof
