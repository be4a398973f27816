// CUPTI: a profiler may subscribe to everything and is told of nothing.

#include <cstdint>
#include <ctime>

#include "capture/emulator/handle.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/versions.h"

using metaprof::emulator::give_handle;

METAPROF_CUDA int cuptiSubscribe(void** subscriber, void*, void*) { return give_handle(subscriber); }
METAPROF_CUDA int cuptiActivityGetNextRecord(void*, long, void** record) {
  *record = nullptr;
  constexpr int no_more = 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED
  return no_more;
}
METAPROF_CUDA int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  *dropped = 0;
  return 0;
}
METAPROF_CUDA int cuptiActivityPopExternalCorrelationId(int, uint64_t* last) {
  if (last) *last = 0;
  return 0;
}
METAPROF_CUDA int cuptiGetTimestamp(uint64_t* nanoseconds) {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  *nanoseconds = uint64_t(now.tv_sec) * 1000000000 + uint64_t(now.tv_nsec);
  return 0;
}
METAPROF_CUDA int cuptiGetVersion(uint32_t* version) {
  // CUPTI_API_VERSION: 22 in CUDA 12.4, 28 in 12.9, 130000 in 13.0.
  const auto v = metaprof::emulator::library_version("cupti", METAPROF_CUDA_MAJOR);
  *version =
      v.major == 12 ? (v.minor > 4 ? 19U : 18U) + uint32_t(v.minor) : 130000U + uint32_t(v.minor) * 100;
  return 0;
}
METAPROF_CUDA int cuptiGetResultString(int result, const char** text) {
  *text = result == 0 ? "CUPTI_SUCCESS" : "CUPTI_ERROR_NOT_SUPPORTED";
  return 0;
}
METAPROF_CUDA int cuptiGetDeviceId(void*, uint32_t* device) {
  *device = 0;
  return 0;
}
