// cuBLAS: handles keep what is set on them, products do nothing.

#include <cstddef>

#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/versions.h"

namespace {

using metaprof::emulator::library_version;

struct Handle {
  void* stream = nullptr;
  int pointer_mode = 0, math_mode = 0, atomics_mode = 0, sm_count_target = 0;
};

}  // namespace

METAPROF_CUDA int cublasCreate_v2(Handle** handle) {
  *handle = new Handle;
  return 0;
}
METAPROF_CUDA int cublasDestroy_v2(Handle* handle) {
  delete handle;
  return 0;
}
METAPROF_CUDA int cublasSetStream_v2(Handle* handle, void* stream) {
  handle->stream = stream;
  return 0;
}
METAPROF_CUDA int cublasGetStream_v2(Handle* handle, void** stream) {
  *stream = handle->stream;
  return 0;
}
METAPROF_CUDA int cublasSetPointerMode_v2(Handle* handle, int mode) {
  handle->pointer_mode = mode;
  return 0;
}
METAPROF_CUDA int cublasGetPointerMode_v2(Handle* handle, int* mode) {
  *mode = handle->pointer_mode;
  return 0;
}
METAPROF_CUDA int cublasSetMathMode(Handle* handle, int mode) {
  handle->math_mode = mode;
  return 0;
}
METAPROF_CUDA int cublasGetMathMode(Handle* handle, int* mode) {
  *mode = handle->math_mode;
  return 0;
}
METAPROF_CUDA int cublasSetAtomicsMode(Handle* handle, int mode) {
  handle->atomics_mode = mode;
  return 0;
}
METAPROF_CUDA int cublasGetAtomicsMode(Handle* handle, int* mode) {
  *mode = handle->atomics_mode;
  return 0;
}
METAPROF_CUDA int cublasSetSmCountTarget(Handle* handle, int count) {
  handle->sm_count_target = count;
  return 0;
}
METAPROF_CUDA int cublasGetSmCountTarget(Handle* handle, int* count) {
  *count = handle->sm_count_target;
  return 0;
}

METAPROF_CUDA int cublasGetVersion_v2(Handle*, int* version) {
  const auto v = library_version("cublas", METAPROF_CUDA_MAJOR);
  *version = v.major * 10000 + v.minor * 100 + v.patch;
  return 0;
}
METAPROF_CUDA int cublasGetProperty(int which, int* value) {
  const auto v = library_version("cublas", METAPROF_CUDA_MAJOR);
  *value = which == 0 ? v.major : which == 1 ? v.minor : v.patch;
  return 0;
}
METAPROF_CUDA size_t cublasGetCudartVersion() {
  return size_t(library_version("runtime", METAPROF_CUDA_MAJOR).cuda());
}
// Batches of factorisations and systems of equations: whether an argument was wrong is written to the host, and none was.
// What the matrices themselves are is left in device memory.
#define SOLVES_BATCHES(letter)                                                                              \
  METAPROF_CUDA int cublas##letter##getrsBatched(void*, int, int, int, const void*, int, const int*, void*, \
                                                 int, int* info, int) {                                     \
    *info = 0;                                                                                              \
    return 0;                                                                                               \
  }                                                                                                         \
  METAPROF_CUDA int cublas##letter##gelsBatched(void*, int, int, int, int, void*, int, void*, int,          \
                                                int* info, int*, int) {                                     \
    *info = 0;                                                                                              \
    return 0;                                                                                               \
  }                                                                                                         \
  METAPROF_CUDA int cublas##letter##geqrfBatched(void*, int, int, void*, int, void*, int* info, int) {      \
    *info = 0;                                                                                              \
    return 0;                                                                                               \
  }
SOLVES_BATCHES(S)
SOLVES_BATCHES(D)
SOLVES_BATCHES(C)
SOLVES_BATCHES(Z)

METAPROF_CUDA const char* cublasGetStatusName(int status) {
  return status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_NOT_SUPPORTED";
}
METAPROF_CUDA const char* cublasGetStatusString(int status) {
  return status == 0 ? "the operation completed successfully" : "the operation is not supported";
}
