// cuBLASLt: descriptors without content, and one algorithm without workspace for every product.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "capture/emulator/handle.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/streams/work.h"
#include "capture/emulator/machine/versions.h"

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

}  // namespace

METAPROF_CUDA int cublasLtCreate(void** handle) { return give_handle(handle); }
METAPROF_CUDA int cublasLtMatmulDescCreate(void** out, int, int) { return give_handle(out); }
METAPROF_CUDA int cublasLtMatrixLayoutCreate(void** out, int, uint64_t, uint64_t, int64_t) {
  return give_handle(out);
}
METAPROF_CUDA int cublasLtMatmulPreferenceCreate(void** out) { return give_handle(out); }
METAPROF_CUDA int cublasLtMatrixTransformDescCreate(void** out, int) { return give_handle(out); }
METAPROF_CUDA int cublasLtMatmulDescInit_internal(void* out, size_t bytes) {
  std::memset(out, 0, bytes);
  return 0;
}
METAPROF_CUDA int cublasLtMatrixLayoutInit_internal(void* out, size_t bytes) {
  std::memset(out, 0, bytes);
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
METAPROF_CUDA int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*,
                                 const void*, const void*, void*, void*, void*, const void*, void*, size_t,
                                 void* stream) {
  constexpr int execution_failed = 13;
  return metaprof_emulator_work(stream) == 0 ? 0 : execution_failed;
}
