// cuSOLVER: factorisations do nothing and need no workspace; `info`, which they leave in device memory, reads as 0:
// success.

#include "capture/emulator/machine/versions.h"
#include "capture/emulator/size_queries.h"

using metaprof::emulator::give_handle;
using metaprof::emulator::library_version;

METAPROF_CUDA int cusolverDnCreate(void** out) { return give_handle(out); }
METAPROF_CUDA int cusolverDnCreateParams(void** out) { return give_handle(out); }
METAPROF_CUDA int cusolverDnCreateSyevjInfo(void** out) { return give_handle(out); }
METAPROF_CUDA int cusolverDnCreateGesvdjInfo(void** out) { return give_handle(out); }
METAPROF_CUDA int cusolverSpCreate(void** out) { return give_handle(out); }
METAPROF_CUDA int cusolverDnGetStream(void*, void** stream) {
  *stream = nullptr;
  return 0;
}
METAPROF_CUDA int cusolverDnXsyevjGetSweeps(void*, void*, int* sweeps) {
  *sweeps = 0;
  return 0;
}
METAPROF_CUDA int cusolverGetVersion(int* version) {
  const auto v = library_version("cusolver", METAPROF_CUDA_MAJOR);
  *version = v.major * 1000 + v.minor * 100 + v.patch;
  return 0;
}
METAPROF_CUDA int cusolverGetProperty(int which, int* value) {
  const auto v = library_version("cusolver", METAPROF_CUDA_MAJOR);
  *value = which == 0 ? v.major : which == 1 ? v.minor : v.patch;
  return 0;
}

#define FOUR(real, complex, BEFORE) \
  METAPROF_SIZE_OF_4(cusolverDn, real##_bufferSize, complex##_bufferSize, BEFORE, int)
FOUR(gesvd, gesvd, 3)
FOUR(sytrf, sytrf, 4)
FOUR(getrf, getrf, 5)
FOUR(potrf, potrf, 5)
FOUR(potri, potri, 5)
FOUR(geqrf, geqrf, 5)
FOUR(orgqr, ungqr, 7)
FOUR(syevd, heevd, 7)
FOUR(syevj, heevj, 7)
FOUR(syevjBatched, heevjBatched, 7)
FOUR(ormqr, unmqr, 11)
FOUR(gesvdj, gesvdj, 12)
FOUR(gesvdjBatched, gesvdjBatched, 11)
FOUR(gesvdaStridedBatched, gesvdaStridedBatched, 16)

METAPROF_TWO_SIZES(cusolverDnXpotrf_bufferSize, 8)
METAPROF_TWO_SIZES(cusolverDnXgetrf_bufferSize, 8)
METAPROF_TWO_SIZES(cusolverDnXgeqrf_bufferSize, 10)
METAPROF_TWO_SIZES(cusolverDnXsytrs_bufferSize, 11)
METAPROF_TWO_SIZES(cusolverDnXsyevd_bufferSize, 11)
METAPROF_TWO_SIZES(cusolverDnXsyevBatched_bufferSize, 11)
METAPROF_TWO_SIZES(cusolverDnXgeev_bufferSize, 17)
