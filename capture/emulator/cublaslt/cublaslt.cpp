// cuBLASLt: one algorithm without workspace for every product. Of the descriptors, the sizes of matrices are kept.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "capture/emulator/data_type.h"
#include "capture/emulator/handle.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/streams/work.h"
#include "capture/emulator/machine/versions.h"

using metaprof::emulator::bytes_of_data_type;
using metaprof::emulator::give_handle;
using metaprof::emulator::library_version;

namespace {

struct HeuristicResult {  // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

// What a cublasLtMatrixLayout_t points to; programs may have room for it of their own (64 bytes).
struct Layout {
  int type = 0, batch = 1;
  uint64_t rows = 0, columns = 0;
};
static_assert(sizeof(Layout) <= 64);

}  // namespace

METAPROF_CUDA int cublasLtCreate(void** handle) { return give_handle(handle); }
METAPROF_CUDA int cublasLtMatmulDescCreate(void** out, int, int) { return give_handle(out); }
METAPROF_CUDA int cublasLtMatrixLayoutCreate(Layout** out, int type, uint64_t rows, uint64_t columns,
                                             int64_t) {
  *out = new Layout{type, 1, rows, columns};
  return 0;
}
METAPROF_CUDA int cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return 0;
}
METAPROF_CUDA int cublasLtMatrixLayoutSetAttribute(Layout* layout, int name, const void* value,
                                                   size_t bytes) {
  constexpr int batch_count = 5;
  if (layout && name == batch_count && bytes == sizeof layout->batch)
    std::memcpy(&layout->batch, value, bytes);
  return 0;
}
METAPROF_CUDA int cublasLtMatmulPreferenceCreate(void** out) { return give_handle(out); }
METAPROF_CUDA int cublasLtMatrixTransformDescCreate(void** out, int) { return give_handle(out); }
METAPROF_CUDA int cublasLtMatmulDescInit_internal(void* out, size_t bytes) {
  std::memset(out, 0, bytes);
  return 0;
}
METAPROF_CUDA int cublasLtMatrixLayoutInit_internal(Layout* out, size_t bytes, int type, uint64_t rows,
                                                    uint64_t columns, int64_t) {
  if (bytes < sizeof(Layout)) return 7;  // CUBLAS_STATUS_INVALID_VALUE
  *out = {type, 1, rows, columns};
  return 0;
}
METAPROF_CUDA int cublasLtMatmulPreferenceInit_internal(void* out, size_t bytes) {
  std::memset(out, 0, bytes);
  return 0;
}
METAPROF_CUDA int cublasLtMatrixTransformDescInit_internal(void* out, size_t bytes) {
  std::memset(out, 0, bytes);
  return 0;
}

METAPROF_CUDA int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int wanted,
                                                 HeuristicResult* results, int* found) {
  *found = wanted > 0 ? 1 : 0;
  if (wanted > 0) results[0] = {};
  return 0;
}

METAPROF_CUDA size_t cublasLtGetVersion() {
  const auto v = library_version("cublas", METAPROF_CUDA_MAJOR);
  const int version = v.major * 10000 + v.minor * 100 + v.patch;
  return size_t(version);
}
METAPROF_CUDA size_t cublasLtGetCudartVersion() {
  return size_t(library_version("runtime", METAPROF_CUDA_MAJOR).cuda());
}
METAPROF_CUDA int cublasLtGetProperty(int which, int* value) {
  const auto v = library_version("cublas", METAPROF_CUDA_MAJOR);
  *value = which == 0 ? v.major : which == 1 ? v.minor : v.patch;
  return 0;
}
METAPROF_CUDA const char* cublasLtGetStatusName(int status) {
  return status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_NOT_SUPPORTED";
}
METAPROF_CUDA const char* cublasLtGetStatusString(int status) {
  return status == 0 ? "the operation completed successfully" : "the operation is not supported";
}
METAPROF_CUDA int cublasLtMatmul(void*, void*, const void*, const void*, const Layout* a, const void*,
                                 const Layout* b, const void*, const void*, const Layout*, void*,
                                 const Layout* d, const void*, void*, size_t, void* stream) {
  constexpr int execution_failed = 13;
  if (!a || !b || !d || d->rows == 0) return metaprof_emulator_work(stream) == 0 ? 0 : execution_failed;
  // D has a row for each of A's, and a column for each sum over the other.
  const auto sizes = [](const Layout* m) { return double(m->rows) * double(m->columns) * m->batch; };
  const double flops = 2 * sizes(a) * double(d->columns);
  const int bytes = bytes_of_data_type(a->type);
  const double moved = (sizes(a) + sizes(b) + sizes(d)) * bytes;
  return metaprof_emulator_work_of(stream, moved, flops, bytes) == 0 ? 0 : execution_failed;
}
