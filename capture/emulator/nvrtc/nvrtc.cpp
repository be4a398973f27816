// NVRTC: every program compiles, to sixteen bytes of nothing. (nvJitLink's stand-in is its like.)

#include <cstddef>
#include <cstring>

#include "capture/emulator/handle.h"
#include "capture/emulator/machine/devices.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/versions.h"

using metaprof::emulator::give_handle;

namespace {

constexpr size_t kCodeBytes = 16;

int give_size(size_t* bytes) {
  *bytes = kCodeBytes;
  return 0;
}
int give_code(char* code) {
  std::memset(code, 0, kCodeBytes);
  return 0;
}

}  // namespace

METAPROF_CUDA int nvrtcVersion(int* major, int* minor) {
  const auto v = metaprof::emulator::library_version("nvrtc", METAPROF_CUDA_MAJOR);
  *major = v.major;
  *minor = v.minor;
  return 0;
}
METAPROF_CUDA int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return 0;
}
METAPROF_CUDA int nvrtcGetSupportedArchs(int* architectures) {
  architectures[0] = metaprof::emulator::device_description().sm;
  return 0;
}
METAPROF_CUDA const char* nvrtcGetErrorString(int error) {
  return error == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_INTERNAL_ERROR";
}
METAPROF_CUDA int nvrtcCreateProgram(void** out) { return give_handle(out); }
METAPROF_CUDA int nvrtcGetPTXSize(void*, size_t* bytes) { return give_size(bytes); }
METAPROF_CUDA int nvrtcGetPTX(void*, char* code) { return give_code(code); }
METAPROF_CUDA int nvrtcGetCUBINSize(void*, size_t* bytes) { return give_size(bytes); }
METAPROF_CUDA int nvrtcGetCUBIN(void*, char* code) { return give_code(code); }
METAPROF_CUDA int nvrtcGetLTOIRSize(void*, size_t* bytes) { return give_size(bytes); }
METAPROF_CUDA int nvrtcGetLTOIR(void*, char* code) { return give_code(code); }
METAPROF_CUDA int nvrtcGetProgramLogSize(void*, size_t* bytes) {
  *bytes = 1;
  return 0;
}
METAPROF_CUDA int nvrtcGetProgramLog(void*, char* text) {
  text[0] = 0;
  return 0;
}
METAPROF_CUDA int nvrtcGetLoweredName(void*, const char* name, const char** lowered) {
  *lowered = name;
  return 0;
}
