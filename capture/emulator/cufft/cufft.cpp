// cuFFT: plans without content and without workspace.

#include <atomic>
#include <cstddef>

#include "capture/emulator/handle.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/versions.h"

using metaprof::emulator::library_version;
using metaprof::emulator::no_bytes;

namespace {

int give_plan(int* out) {
  static std::atomic<int> next = 1;
  *out = next++;
  return 0;
}

}  // namespace

METAPROF_CUDA int cufftCreate(int* plan) { return give_plan(plan); }
METAPROF_CUDA int cufftPlan1d(int* plan, int, int, int) { return give_plan(plan); }
METAPROF_CUDA int cufftPlan2d(int* plan, int, int, int) { return give_plan(plan); }
METAPROF_CUDA int cufftPlan3d(int* plan, int, int, int, int) { return give_plan(plan); }
METAPROF_CUDA int cufftPlanMany(int* plan) { return give_plan(plan); }

METAPROF_CUDA int cufftMakePlan1d(int, int, int, int, size_t* bytes) { return no_bytes(bytes); }
METAPROF_CUDA int cufftMakePlan2d(int, int, int, int, size_t* bytes) { return no_bytes(bytes); }
METAPROF_CUDA int cufftMakePlan3d(int, int, int, int, int, size_t* bytes) { return no_bytes(bytes); }
METAPROF_CUDA int cufftMakePlanMany(int, int, int*, int*, int, int, int*, int, int, int, int, size_t* bytes) {
  return no_bytes(bytes);
}
METAPROF_CUDA int cufftMakePlanMany64(int, int, void*, void*, long, long, void*, long, long, int, long,
                                      size_t* bytes) {
  return no_bytes(bytes);
}
METAPROF_CUDA int cufftXtMakePlanMany(int, int, void*, void*, long, long, int, void*, long, long, int, long,
                                      size_t* bytes, int) {
  return no_bytes(bytes);
}
METAPROF_CUDA int cufftGetSize(int, size_t* bytes) { return no_bytes(bytes); }

METAPROF_CUDA int cufftGetVersion(int* version) {
  const auto v = library_version("cufft", METAPROF_CUDA_MAJOR);
  *version = v.major * 1000 + v.minor * 100 + v.patch;
  return 0;
}
METAPROF_CUDA int cufftGetProperty(int which, int* value) {
  const auto v = library_version("cufft", METAPROF_CUDA_MAJOR);
  *value = which == 0 ? v.major : which == 1 ? v.minor : v.patch;
  return 0;
}
