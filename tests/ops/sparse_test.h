#pragma once
// Sparse matrices on an emulated H200, and what is asked of its allocator.

#include "meta/ops/sparse/sparse.h"
#include "tests/ops/image_ops_test.h"

namespace metaprof {

/// Bytes of blocks, as products of small numbers.
struct Blocks : std::vector<int64_t> {
  Blocks(std::initializer_list<int> bytes) : vector(bytes.begin(), bytes.end()) {}
  Blocks(const std::vector<int64_t>& bytes) : vector(bytes) {}
  Blocks(iterator begin, iterator end) : vector(begin, end) {}
  Blocks(const_iterator begin, const_iterator end) : vector(begin, end) {}
};

/// Matrices of 5 rows, 4 columns and 6 elements, or of 6 rows, 4 columns and 3 blocks of 2 × 2.
class SparseOps : public ImageOps {
 protected:
  Tensor coordinates(bool coalesced = true, int64_t height = 5, int64_t width = 4) {
    Tensor sparse =
        make_sparse(*session_, tensor(Sizes{2, 6}, DType::i64), tensor(Sizes{6}), Sizes{height, width});
    sparse->extra->coalesced = coalesced;
    return sparse;
  }
  Tensor rows(int64_t height = 5, int64_t width = 4) {
    return make_sparse_compressed(*session_, Layout::sparse_csr, tensor(Sizes{height + 1}, DType::i64),
                                  tensor(Sizes{6}, DType::i64), tensor(Sizes{6}), Sizes{height, width});
  }
  Tensor blocks(DType dtype = DType::f32) {
    return make_sparse_compressed(*session_, Layout::sparse_bsr, tensor(Sizes{4}, DType::i64),
                                  tensor(Sizes{3}, DType::i64), tensor(Sizes{3, 2, 2}, dtype), Sizes{6, 4});
  }
};

}  // namespace metaprof
