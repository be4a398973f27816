// nvJitLink: every linking succeeds, with sixteen bytes of nothing. Its functions carry the release in their names.

#include <cstddef>
#include <cstring>

#include "capture/emulator/handle.h"
#include "capture/emulator/machine/export.h"

using metaprof::emulator::give_handle;

namespace {

constexpr size_t kCodeBytes = 16;

int give_size(size_t* bytes, size_t value) {
  *bytes = value;
  return 0;
}
int give_code(char* code) {
  std::memset(code, 0, kCodeBytes);
  return 0;
}

}  // namespace

#define FUNCTION(name, release) METAPROF_CUDA int __nvJitLink##name##_##release
#define RELEASE(release)                                                                               \
  FUNCTION(Create, release)(void** out, unsigned, const char**) { return give_handle(out); }           \
  FUNCTION(Destroy, release)(void**) { return 0; }                                                     \
  FUNCTION(AddData, release)(void*, int, const void*, size_t, const char*) { return 0; }               \
  FUNCTION(AddFile, release)(void*, int, const char*) { return 0; }                                    \
  FUNCTION(Complete, release)(void*) { return 0; }                                                     \
  FUNCTION(GetLinkedCubinSize, release)(void*, size_t* bytes) { return give_size(bytes, kCodeBytes); } \
  FUNCTION(GetLinkedCubin, release)(void*, char* code) { return give_code(code); }                     \
  FUNCTION(GetLinkedPtxSize, release)(void*, size_t* bytes) { return give_size(bytes, kCodeBytes); }   \
  FUNCTION(GetLinkedPtx, release)(void*, char* code) { return give_code(code); }                       \
  FUNCTION(GetErrorLogSize, release)(void*, size_t* bytes) { return give_size(bytes, 0); }             \
  FUNCTION(GetErrorLog, release)(void*, char*) { return 0; }                                           \
  FUNCTION(GetInfoLogSize, release)(void*, size_t* bytes) { return give_size(bytes, 0); }              \
  FUNCTION(GetInfoLog, release)(void*, char*) { return 0; }

#if METAPROF_CUDA_MAJOR == 12
RELEASE(12_0)
RELEASE(12_1)
RELEASE(12_2)
RELEASE(12_3)
RELEASE(12_4)
RELEASE(12_5)
RELEASE(12_6)
RELEASE(12_7)
RELEASE(12_8)
RELEASE(12_9)
#else
RELEASE(13_0)
RELEASE(13_1)
RELEASE(13_2)
RELEASE(13_3)
RELEASE(13_4)
RELEASE(13_5)
#endif
