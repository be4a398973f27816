// A cuBLASLt (libcublasLt.so) that multiplies nothing. Some of cuDNN's engines are products of cuBLASLt: they ask it which
// algorithms it has before they say what they would do, and leave themselves out where it has none. The real library has
// none without a GPU. This one always has as many as were asked for, and none of them needs workspace; on an H200 some
// need 272 or 400 bytes, and those that divide the inner dimension a few MiB (tests/measured/h200).

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

enum Status : int { success = 0, not_supported = 15 };

struct Algorithm {  // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Algorithm) == 96);

// Programs that keep a description on their own stack have room for so much of it: cublasLtMatmulDescOpaque_t.
constexpr size_t kDescription = 256;

Status describe(void** out) {
  *out = new char[kDescription]();
  return success;
}
Status forget(const void* description) {
  delete[] static_cast<const char*>(description);
  return success;
}
Status clear(void* description, size_t bytes) {
  std::memset(description, 0, bytes);
  return success;
}

}  // namespace

// The framework's names, which nothing here declares.
#define CUBLASLT_GIVES(type, name) extern "C" __attribute__((visibility("default"))) type name
#define CUBLASLT(name) CUBLASLT_GIVES(Status, name)

CUBLASLT(cublasLtCreate)(void** handle) { return describe(handle); }
CUBLASLT(cublasLtDestroy)(void* handle) { return forget(handle); }
CUBLASLT(cublasLtMatmulDescCreate)(void** out, int, int) { return describe(out); }
CUBLASLT(cublasLtMatrixLayoutCreate)(void** out, int, uint64_t, uint64_t, int64_t) { return describe(out); }
CUBLASLT(cublasLtMatmulPreferenceCreate)(void** out) { return describe(out); }
CUBLASLT(cublasLtMatrixTransformDescCreate)(void** out, int) { return describe(out); }
CUBLASLT(cublasLtMatmulDescDestroy)(void* description) { return forget(description); }
CUBLASLT(cublasLtMatrixLayoutDestroy)(void* description) { return forget(description); }
CUBLASLT(cublasLtMatmulPreferenceDestroy)(void* description) { return forget(description); }
CUBLASLT(cublasLtMatrixTransformDescDestroy)(void* description) { return forget(description); }
CUBLASLT(cublasLtMatmulDescInit_internal)(void* out, size_t bytes, int, int) { return clear(out, bytes); }
CUBLASLT(cublasLtMatrixLayoutInit_internal)(void* out, size_t bytes, int, uint64_t, uint64_t, int64_t) {
  return clear(out, bytes);
}
CUBLASLT(cublasLtMatmulPreferenceInit_internal)(void* out, size_t bytes) { return clear(out, bytes); }
CUBLASLT(cublasLtMatrixTransformDescInit_internal)(void* out, size_t bytes, int) { return clear(out, bytes); }
CUBLASLT(cublasLtMatmulDescSetAttribute)(void*, int, const void*, size_t) { return success; }
CUBLASLT(cublasLtMatrixLayoutSetAttribute)(void*, int, const void*, size_t) { return success; }
CUBLASLT(cublasLtMatmulPreferenceSetAttribute)(void*, int, const void*, size_t) { return success; }
CUBLASLT(cublasLtMatrixTransformDescSetAttribute)(void*, int, const void*, size_t) { return success; }
CUBLASLT(cublasLtMatmulDescGetAttribute)(void*, int, void*, size_t, size_t*) { return not_supported; }
CUBLASLT(cublasLtMatrixLayoutGetAttribute)(void*, int, void*, size_t, size_t*) { return not_supported; }
CUBLASLT(cublasLtMatrixTransformDescGetAttribute)(void*, int, void*, size_t, size_t*) {
  return not_supported;
}

CUBLASLT(cublasLtMatmulAlgoGetHeuristic)
(void*, void*, void*, void*, void*, void*, void*, int wanted, Algorithm* algorithms, int* found) {
  for (int i = 0; i < wanted; ++i) algorithms[i] = {};
  *found = wanted;
  return success;
}
CUBLASLT(cublasLtMatmul)() { return not_supported; }
CUBLASLT(cublasLtMatrixTransform)() { return not_supported; }

CUBLASLT_GIVES(size_t, cublasLtGetVersion)() { return METAPROF_CUBLAS_VERSION; }
CUBLASLT(cublasLtGetProperty)(int which, int* value) {
  constexpr int parts[] = {METAPROF_CUBLAS_VERSION / 10000, METAPROF_CUBLAS_VERSION / 100 % 100,
                           METAPROF_CUBLAS_VERSION % 100};
  if (which < 0 || which > 2) return not_supported;
  *value = parts[which];
  return success;
}
