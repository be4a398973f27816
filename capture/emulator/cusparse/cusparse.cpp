// cuSPARSE: descriptors keep the sizes that programs ask for again; nothing is computed and no workspace is needed.
// A product of sparse matrices has no elements: how many it would have, only its values say.

#include <cstdint>

#include "capture/emulator/machine/versions.h"
#include "capture/emulator/size_queries.h"

using metaprof::emulator::give_handle;
using metaprof::emulator::library_version;
using metaprof::emulator::no_bytes;

namespace {

struct Matrix {
  int64_t rows = 0, columns = 0, elements = 0;
};

int give_matrix(Matrix** out, int64_t rows, int64_t columns, int64_t elements) {
  *out = new Matrix{rows, columns, elements};
  return 0;
}

}  // namespace

METAPROF_CUDA int cusparseCreate(void** out) { return give_handle(out); }
METAPROF_CUDA int cusparseCreateMatDescr(void** out) { return give_handle(out); }
METAPROF_CUDA int cusparseCreateBsrsv2Info(void** out) { return give_handle(out); }
METAPROF_CUDA int cusparseCreateBsrsm2Info(void** out) { return give_handle(out); }
METAPROF_CUDA int cusparseSpGEMM_createDescr(void** out) { return give_handle(out); }
METAPROF_CUDA int cusparseSpSV_createDescr(void** out) { return give_handle(out); }
METAPROF_CUDA int cusparseSpSM_createDescr(void** out) { return give_handle(out); }
METAPROF_CUDA int cusparseCreateDnVec(void** out) { return give_handle(out); }
METAPROF_CUDA int cusparseCreateDnMat(void** out) { return give_handle(out); }
METAPROF_CUDA int cusparseCreateIdentityPermutation() { return 0; }

METAPROF_CUDA int cusparseCreateCsr(Matrix** out, int64_t rows, int64_t columns, int64_t elements) {
  return give_matrix(out, rows, columns, elements);
}
METAPROF_CUDA int cusparseCreateCsc(Matrix** out, int64_t rows, int64_t columns, int64_t elements) {
  return give_matrix(out, rows, columns, elements);
}
METAPROF_CUDA int cusparseCreateCoo(Matrix** out, int64_t rows, int64_t columns, int64_t elements) {
  return give_matrix(out, rows, columns, elements);
}
METAPROF_CUDA int cusparseDestroySpMat(Matrix* matrix) {
  delete matrix;
  return 0;
}
METAPROF_CUDA int cusparseSpMatGetSize(const Matrix* matrix, int64_t* rows, int64_t* columns,
                                       int64_t* elements) {
  *rows = matrix->rows;
  *columns = matrix->columns;
  *elements = matrix->elements;
  return 0;
}

METAPROF_CUDA int cusparseGetVersion(void*, int* version) {
  const auto v = library_version("cusparse", METAPROF_CUDA_MAJOR);
  *version = v.major * 1000 + v.minor * 100 + v.patch;
  return 0;
}
METAPROF_CUDA int cusparseGetProperty(int which, int* value) {
  const auto v = library_version("cusparse", METAPROF_CUDA_MAJOR);
  *value = which == 0 ? v.major : which == 1 ? v.minor : v.patch;
  return 0;
}
METAPROF_CUDA const char* cusparseGetErrorName(int status) {
  return status == 0 ? "CUSPARSE_STATUS_SUCCESS" : "CUSPARSE_STATUS_NOT_SUPPORTED";
}
METAPROF_CUDA const char* cusparseGetErrorString(int status) {
  return status == 0 ? "success" : "not supported";
}

METAPROF_CUDA int cusparseXbsrsv2_zeroPivot(void*, void*, int* position) {
  *position = -1;  // there is none
  return 0;
}
METAPROF_CUDA int cusparseXbsrsm2_zeroPivot(void*, void*, int* position) {
  *position = -1;
  return 0;
}

// The number of elements of a sum is a pointer to the host here (CUSPARSE_POINTER_MODE_HOST).
METAPROF_CUDA int cusparseXcsrgeam2Nnz(METAPROF_WORDS_13, int* elements) { return no_bytes(elements); }
METAPROF_SIZE(cusparseSpGEMM_workEstimation, 11, size_t)
METAPROF_SIZE(cusparseSpGEMM_compute, 11, size_t)

METAPROF_SIZE(cusparseSpMV_bufferSize, 9, size_t)
METAPROF_SIZE(cusparseSpSV_bufferSize, 9, size_t)
METAPROF_SIZE(cusparseSpMM_bufferSize, 10, size_t)
METAPROF_SIZE(cusparseSpSM_bufferSize, 10, size_t)
METAPROF_SIZE(cusparseSDDMM_bufferSize, 10, size_t)
METAPROF_SIZE(cusparseSparseToDense_bufferSize, 4, size_t)
METAPROF_SIZE(cusparseDenseToSparse_bufferSize, 4, size_t)
METAPROF_SIZE(cusparseCsr2cscEx2_bufferSize, 14, size_t)
METAPROF_SIZE(cusparseXcoosort_bufferSizeExt, 6, size_t)
METAPROF_SIZE(cusparseXcsrsort_bufferSizeExt, 6, size_t)
METAPROF_SIZE_OF_4(cusparse, csrgeam2_bufferSizeExt, csrgeam2_bufferSizeExt, 19, size_t)
METAPROF_SIZE_OF_4(cusparse, bsrsv2_bufferSize, bsrsv2_bufferSize, 11, int)
METAPROF_SIZE_OF_4(cusparse, bsrsm2_bufferSize, bsrsm2_bufferSize, 13, int)
