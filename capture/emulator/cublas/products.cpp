// Products of matrices do nothing, and take time: their sizes are known. Those with arrays of pointers, too; all other
// functions of cuBLAS that work on a stream take the shortest time (stub.h).

#include <cstdint>

#include "capture/emulator/data_type.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/streams/work.h"

using metaprof::emulator::bytes_of_data_type;

namespace {

constexpr int kExecutionFailed = 13;

// A handle begins with its stream.
int multiply(void* const* handle, int64_t m, int64_t n, int64_t k, int64_t batch, int element_bytes) {
  const auto rows = double(m), columns = double(n), inner = double(k), products = double(batch);
  const double moved = (rows * inner + inner * columns + rows * columns) * products * element_bytes;
  const double flops = 2 * rows * columns * inner * products;
  return metaprof_emulator_work_of(*handle, moved, flops, element_bytes) == 0 ? 0 : kExecutionFailed;
}

}  // namespace

// The matrices and their factors are not looked at, so their pointers have no types.
#define PRODUCTS(letter, bytes, suffix, Int)                                                         \
  METAPROF_CUDA int cublas##letter##gemm##suffix(void* const* handle, int, int, Int m, Int n, Int k, \
                                                 const void*, const void*, Int, const void*, Int,    \
                                                 const void*, void*, Int) {                          \
    return multiply(handle, m, n, k, 1, bytes);                                                      \
  }
#define BATCHED_PRODUCTS(letter, bytes, suffix, Int)                                                        \
  METAPROF_CUDA int cublas##letter##gemmStridedBatched##suffix(                                             \
      void* const* handle, int, int, Int m, Int n, Int k, const void*, const void*, Int, long long,         \
      const void*, Int, long long, const void*, void*, Int, long long, Int batch) {                         \
    return multiply(handle, m, n, k, batch, bytes);                                                         \
  }                                                                                                         \
  METAPROF_CUDA int cublas##letter##gemmBatched##suffix(void* const* handle, int, int, Int m, Int n, Int k, \
                                                        const void*, const void*, Int, const void*, Int,    \
                                                        const void*, void*, Int, Int batch) {               \
    return multiply(handle, m, n, k, batch, bytes);                                                         \
  }
#define TYPED_PRODUCTS(suffix, Int)                                                                          \
  METAPROF_CUDA int cublasGemmEx##suffix(void* const* handle, int, int, Int m, Int n, Int k, const void*,    \
                                         const void*, int type, Int, const void*, int, Int, const void*,     \
                                         void*, int, Int, int, int) {                                        \
    return multiply(handle, m, n, k, 1, bytes_of_data_type(type));                                           \
  }                                                                                                          \
  METAPROF_CUDA int cublasGemmStridedBatchedEx##suffix(void* const* handle, int, int, Int m, Int n, Int k,   \
                                                       const void*, const void*, int type, Int, long long,   \
                                                       const void*, int, Int, long long, const void*, void*, \
                                                       int, Int, long long, Int batch, int, int) {           \
    return multiply(handle, m, n, k, batch, bytes_of_data_type(type));                                       \
  }                                                                                                          \
  METAPROF_CUDA int cublasGemmBatchedEx##suffix(void* const* handle, int, int, Int m, Int n, Int k,          \
                                                const void*, const void*, int type, Int, const void*, int,   \
                                                Int, const void*, void*, int, Int, Int batch, int, int) {    \
    return multiply(handle, m, n, k, batch, bytes_of_data_type(type));                                       \
  }

PRODUCTS(S, 4, _v2, int)
PRODUCTS(S, 4, _v2_64, int64_t)
PRODUCTS(D, 8, _v2, int)
PRODUCTS(D, 8, _v2_64, int64_t)
PRODUCTS(H, 2, , int)
PRODUCTS(H, 2, _64, int64_t)
BATCHED_PRODUCTS(S, 4, , int)
BATCHED_PRODUCTS(S, 4, _64, int64_t)
BATCHED_PRODUCTS(D, 8, , int)
BATCHED_PRODUCTS(D, 8, _64, int64_t)
BATCHED_PRODUCTS(H, 2, , int)
BATCHED_PRODUCTS(H, 2, _64, int64_t)
TYPED_PRODUCTS(, int)
TYPED_PRODUCTS(_64, int64_t)
