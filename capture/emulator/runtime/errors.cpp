// Errors, versions and what begins every call.

#include <cstdlib>

#include "capture/emulator/machine/versions.h"
#include "capture/emulator/runtime/runtime.h"

namespace metaprof::emulator {
namespace {

thread_local Error last_error = success;

}  // namespace

Error fail(Error error) { return last_error = error; }

Error use_device() {
  if (const Error error = enter()) return error;
  if (device_count() == 0) return no_device;
  activate(current_device());
  return success;
}

}  // namespace metaprof::emulator

using namespace metaprof::emulator;

METAPROF_RUNTIME cudaGetLastError() {
  const Error error = last_error;
  last_error = success;
  return error;
}
METAPROF_RUNTIME cudaPeekAtLastError() { return last_error; }

METAPROF_CUDA const char* cudaGetErrorName(int error) {
  const char* const name = runtime_name(error);
  return name ? name : "unrecognized error code";
}
METAPROF_CUDA const char* cudaGetErrorString(int error) {
  const char* const text = description(error);
  return text ? text : "unrecognized error code";
}

METAPROF_RUNTIME cudaRuntimeGetVersion(int* version) {
  *version = library_version("runtime", METAPROF_CUDA_MAJOR).cuda();
  return success;
}
METAPROF_RUNTIME cudaDriverGetVersion(int* version) {
  *version = driver_version();
  return success;
}

METAPROF_RUNTIME cudaProfilerStart() { return success; }
METAPROF_RUNTIME cudaProfilerStop() { return success; }
