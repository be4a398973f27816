// Code: modules, libraries, functions and their launch. Code is taken and never read; a name gives a function.

#include <atomic>
#include <cstring>

#include "capture/emulator/driver/driver.h"
#include "capture/emulator/machine/counters.h"
#include "capture/emulator/machine/memory/memory.h"
#include "capture/emulator/machine/occupancy.h"
#include "capture/emulator/machine/streams/capture.h"
#include "capture/emulator/machine/streams/streams.h"

using namespace metaprof::emulator;

namespace {

// Handles of modules, functions and the like are numbers that nobody looks behind.
void* next_handle() {
  static std::atomic<uintptr_t> next = 0x1000;
  return reinterpret_cast<void*>(next.fetch_add(16));
}

Error give_handle(void** out) {
  if (const Error error = use_context()) return error;
  *out = next_handle();
  return success;
}

Error launch_kernel(uint64_t blocks, uint64_t threads, Stream* stream) {
  if (const Error error = use_context()) return error;
  if (blocks == 0 || threads == 0 || threads > 1024) return invalid_value;
  const Cost cost = cost_of_threads(double(blocks) * double(threads));
  if (const Error error = submit(stream, NodeKind::kernel, cost)) return error;
  count(Counter::kernels);
  return success;
}

struct LaunchConfiguration {  // CUlaunchConfig
  unsigned grid[3], block[3], shared_memory;
  Stream* stream;
};

}  // namespace

METAPROF_DRIVER cuModuleLoad(void** out, const char*) { return give_handle(out); }
METAPROF_DRIVER cuModuleLoadData(void** out, const void*) { return give_handle(out); }
METAPROF_DRIVER cuModuleLoadDataEx(void** out, const void*, unsigned, int*, void**) {
  return give_handle(out);
}
METAPROF_DRIVER cuModuleLoadFatBinary(void** out, const void*) { return give_handle(out); }
METAPROF_DRIVER cuModuleUnload(void*) { return success; }
METAPROF_DRIVER cuModuleGetFunction(void** out, void*, const char*) { return give_handle(out); }
METAPROF_DRIVER cuModuleGetLoadingMode(int* mode) {
  *mode = 2;  // lazy
  return success;
}
METAPROF_DRIVER cuModuleGetGlobal_v2(uintptr_t* address, size_t* bytes, void*, const char*) {
  if (const Error error = use_context()) return error;
  constexpr size_t assumed = 65536;  // its size is in the code
  if (bytes) *bytes = assumed;
  if (address) *address = borrow_addresses(current_device(), assumed);
  return success;
}
METAPROF_DRIVER cuLibraryLoadData(void** out, ...) { return give_handle(out); }
METAPROF_DRIVER cuLibraryLoadFromFile(void** out, ...) { return give_handle(out); }
METAPROF_DRIVER cuLibraryUnload(void*) { return success; }
METAPROF_DRIVER cuLibraryGetKernel(void** out, void*, const char*) { return give_handle(out); }
METAPROF_DRIVER cuLibraryGetModule(void** out, void*) { return give_handle(out); }
METAPROF_DRIVER cuKernelGetFunction(void** out, void* kernel) {
  *out = kernel;
  return success;
}
METAPROF_DRIVER cuLinkCreate_v2(unsigned, int*, void**, void** out) { return give_handle(out); }
METAPROF_DRIVER cuLinkAddData_v2() { return success; }
METAPROF_DRIVER cuLinkAddFile_v2() { return success; }
METAPROF_DRIVER cuLinkComplete(void*, void** code, size_t* bytes) {
  static char nothing[16] = {};
  *code = nothing;
  *bytes = sizeof nothing;
  return success;
}
METAPROF_DRIVER cuLinkDestroy(void*) { return success; }

// The numbers are CUDA's CUfunction_attribute.
METAPROF_DRIVER cuFuncGetAttribute(int* value, int attribute, void*) {
  switch (attribute) {
    case 0: *value = 1024; break;               // threads of a block
    case 4: *value = kAssumedRegisters; break;  // registers
    case 5:
    case 6: *value = binary_version(); break;
    case 8: *value = int(device_description().shared_memory_per_block); break;
    default: *value = 0;
  }
  return success;
}
METAPROF_DRIVER cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}
METAPROF_DRIVER cuFuncSetAttribute(void*, int, int) { return success; }
METAPROF_DRIVER cuKernelSetAttribute(int, int, void*, int) { return success; }
METAPROF_DRIVER cuFuncSetCacheConfig(void*, int) { return success; }
METAPROF_DRIVER cuFuncSetSharedMemConfig(void*, int) { return success; }
METAPROF_DRIVER cuFuncLoad(void*) { return success; }
METAPROF_DRIVER cuFuncIsLoaded(int* state, void*) {
  *state = 1;
  return success;
}
METAPROF_DRIVER cuFuncGetName(const char** name, void*) {
  *name = "kernel";
  return success;
}

METAPROF_DRIVER cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads,
                                                            size_t shared_memory) {
  *blocks = active_blocks(threads, shared_memory);
  return success;
}
METAPROF_DRIVER cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void*, int threads,
                                                                     size_t shared_memory, unsigned) {
  *blocks = active_blocks(threads, shared_memory);
  return success;
}
METAPROF_DRIVER cuOccupancyMaxActiveClusters(int* clusters, void*, const LaunchConfiguration* c) {
  const int threads = int(c->block[0] * c->block[1] * c->block[2]);
  *clusters = active_blocks(threads, c->shared_memory) * device_description().multiprocessors / 2;
  return success;
}
METAPROF_DRIVER cuOccupancyMaxPotentialClusterSize(int* size, void*, const LaunchConfiguration*) {
  *size = 8;  // what every device that has clusters can do
  return success;
}

METAPROF_DRIVER cuLaunchKernel(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned, Stream* stream, void**, void**) {
  return launch_kernel(uint64_t(gx) * gy * gz, uint64_t(bx) * by * bz, stream);
}
METAPROF_DRIVER cuLaunchCooperativeKernel(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                          unsigned by, unsigned bz, unsigned, Stream* stream, void**) {
  return launch_kernel(uint64_t(gx) * gy * gz, uint64_t(bx) * by * bz, stream);
}
METAPROF_DRIVER cuLaunchKernelEx(const LaunchConfiguration* c, void*, void**, void**) {
  return launch_kernel(uint64_t(c->grid[0]) * c->grid[1] * c->grid[2],
                       uint64_t(c->block[0]) * c->block[1] * c->block[2], c->stream);
}
METAPROF_DRIVER cuLaunchHostFunc(Stream* stream, void (*call)(void*), void* data) {
  if (const Error error = submit(stream, NodeKind::host)) return error;
  CaptureInfo capture;
  capture_info(stream, &capture);
  if (capture.status == CaptureStatus::none) call(data);  // a node of a graph runs when the graph does: never
  return success;
}
// A description of a tensor for copies in hardware: 128 bytes that only kernels read.
METAPROF_DRIVER cuTensorMapEncodeTiled(void* map, ...) {
  std::memset(map, 0, 128);
  return success;
}
METAPROF_DRIVER cuTensorMapEncodeIm2col(void* map, ...) {
  std::memset(map, 0, 128);
  return success;
}
