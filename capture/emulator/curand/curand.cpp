// cuRAND's generators: they generate nothing. (PyTorch draws its numbers in kernels of its own.)

#include "capture/emulator/handle.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/versions.h"

using metaprof::emulator::give_handle;
using metaprof::emulator::library_version;

METAPROF_CUDA int curandCreateGenerator(void** out, int) { return give_handle(out); }
METAPROF_CUDA int curandCreateGeneratorHost(void** out, int) { return give_handle(out); }
METAPROF_CUDA int curandGetVersion(int* version) {
  const auto v = library_version("curand", METAPROF_CUDA_MAJOR);
  *version = v.major * 1000 + v.minor * 100 + v.patch;
  return 0;
}
METAPROF_CUDA int curandGetProperty(int which, int* value) {
  const auto v = library_version("curand", METAPROF_CUDA_MAJOR);
  *value = which == 0 ? v.major : which == 1 ? v.minor : v.patch;
  return 0;
}
