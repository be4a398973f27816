// Products of rows of blocks (BSR) with dense matrices (native/sparse/cuda/SparseBlasImpl.cpp, native/sparse/SparseBlasImpl.cpp
// and torch/sparse/_triton_ops.py, PyTorch 2.11).

#include <fmt/format.h>

#include <bit>

#include "meta/ops/rules/formulas.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

bool is_plain_float(DType dtype) { return dtype == DType::f32 || is_reduced_floating(dtype); }

// Triton's kernels take blocks of powers of two that divide the dense matrix; two factors of one element are made.
bool triton_takes(int64_t block, int64_t columns) {
  return block >= 16 && std::has_single_bit(uint64_t(block)) && columns % block == 0;
}

void by_triton(Session& s, const Tensor& sum) {
  const Tensor left = s.empty({}, sum.dtype(), sum.device()), right = s.empty({}, sum.dtype(), sum.device());
}

// _compressed_row_strided_mm_out: what each block meets is gathered and multiplied, in 32 bits at least, and the products
// are added up by their rows.
void by_gathering(Session& s, const Tensor& blocks, const Tensor& sum) {
  const Tensor values = sparse_part(blocks, 2);
  const int64_t count = values.size(0), block = values.size(1), columns = sum.size(1);
  const Sizes met{count, block, columns};
  const auto floats = [&](SizesView sizes) { return s.empty(sizes, DType::f32, sum.device()); };
  const bool reduced = is_reduced_floating(sum.dtype());
  const Tensor gathered = s.empty(met, sum.dtype(), sum.device());
  Tensor wide_values, wide_gathered;
  if (reduced) {
    wide_values = floats(values.sizes());
    wide_gathered = floats(met);
  }
  const Tensor products = s.empty(met, reduced ? DType::f32 : sum.dtype(), sum.device());
  wide_gathered = Tensor();
  wide_values = Tensor();
  const Tensor coordinates = s.empty(Sizes{2, count}, sparse_part(blocks, 1).dtype(), sum.device());
  if (reduced) const Tensor wide_sum = floats(sum.sizes());
}

// block_sparse_mm: lists of 32 bits, and a result by columns.
void by_cusparse(Session& s, const Tensor& blocks, const Tensor& dense, const Tensor& sum) {
  const bool as_given = dense.strides()[0] == 1 || dense.strides()[1] == 1;
  const Tensor factor = as_given ? dense : clone(dense, MemoryFormat::contiguous);
  const Tensor written = sum.strides()[0] == 1 ? sum : clone(transpose(sum, 0, 1), MemoryFormat::contiguous);
  const Tensor begins = s.empty(sparse_part(blocks, 0).sizes(), DType::i32, sum.device()),
               columns = s.empty(sparse_part(blocks, 1).sizes(), DType::i32, sum.device());
}

}  // namespace

void add_product_of_blocks(Call& c, const Tensor& blocks, const Tensor& dense, const Tensor& sum) {
  const Tensor values = sparse_part(blocks, 2);
  if (values.size(1) != values.size(2) || values.size(1) < 2)
    c.error(
        fmt::format("expects square blocks of 2 rows at least, got {} × {}", values.size(1), values.size(2)));
  if (values.size(0) == 0) return;  // the sum is only scaled
  if (!is_plain_float(sum.dtype())) return by_cusparse(c.session, blocks, dense, sum);
  if (triton_takes(values.size(1), sum.size(1))) return by_triton(c.session, sum);
  by_gathering(c.session, blocks, sum);
  const double beta = c.real("beta");
  if (beta != 0 && beta != 1) const Tensor part = mul(c.tensor("self"), c["beta"]);
}

}  // namespace metaprof
