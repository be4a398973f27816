// Kernels: registered, asked about, launched; nothing runs.

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "capture/emulator/machine/counters.h"
#include "capture/emulator/machine/entry_point.h"
#include "capture/emulator/machine/memory/memory.h"
#include "capture/emulator/machine/occupancy.h"
#include "capture/emulator/machine/streams/streams.h"
#include "capture/emulator/runtime/runtime.h"

using namespace metaprof::emulator;

namespace {

struct LaunchConfiguration {
  Dim3 grid, block;
  size_t shared_memory;
  Stream* stream;
};
thread_local LaunchConfiguration pushed;

// Variables of device code, by the address that stands for them on the host.
struct Variable {
  size_t bytes = 0;
  uintptr_t address[kMostDevices] = {};
};
std::mutex variables_mutex;
std::map<const void*, Variable>& variables() {
  static auto* const kVariables = new std::map<const void*, Variable>;
  return *kVariables;
}

Error launch_kernel(Dim3 grid, Dim3 block, Stream* stream) {
  if (const Error error = use_device()) return fail(error);
  if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z) return fail(invalid_configuration);
  if (uint64_t(block.x) * block.y * block.z > 1024 || grid.y > 65535 || grid.z > 65535)
    return fail(invalid_configuration);
  const double threads = double(grid.x) * grid.y * grid.z * block.x * block.y * block.z;
  if (const Error error = submit(stream, NodeKind::kernel, cost_of_threads(threads))) return fail(error);
  count(Counter::kernels);
  return success;
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): what nvcc puts into programs calls them so
METAPROF_CUDA void** __cudaRegisterFatBinary(void*) {
  static void* binary = nullptr;
  return &binary;
}
METAPROF_CUDA void __cudaRegisterFatBinaryEnd(void**) {}
METAPROF_CUDA void __cudaUnregisterFatBinary(void**) {}
METAPROF_CUDA void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*,
                                          void*, int*) {}
METAPROF_CUDA void __cudaRegisterVar(void**, char* variable, char*, const char*, int, size_t bytes, int,
                                     int) {
  const std::lock_guard lock(variables_mutex);
  variables()[variable].bytes = bytes;
}
METAPROF_CUDA void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int) {}
METAPROF_CUDA char __cudaInitModule(void**) { return 1; }

METAPROF_CUDA unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared_memory,
                                                   Stream* stream) {
  pushed = {grid, block, shared_memory, stream};
  return 0;
}
METAPROF_RUNTIME __cudaPopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared_memory, void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared_memory = pushed.shared_memory;
  *static_cast<Stream**>(stream) = pushed.stream;
  return success;
}

METAPROF_RUNTIME __cudaGetKernel(const void** kernel, const void* function) {
  *kernel = function;
  return success;
}
METAPROF_RUNTIME __cudaLaunchKernel(const void*, Dim3 grid, Dim3 block, void**, size_t, Stream* stream) {
  return launch_kernel(grid, block, stream);
}
// NOLINTEND(bugprone-reserved-identifier)
METAPROF_RUNTIME cudaLaunchKernel(const void*, Dim3 grid, Dim3 block, void**, size_t, Stream* stream) {
  return launch_kernel(grid, block, stream);
}
METAPROF_RUNTIME cudaLaunchCooperativeKernel(const void*, Dim3 grid, Dim3 block, void**, size_t,
                                             Stream* stream) {
  return launch_kernel(grid, block, stream);
}
METAPROF_RUNTIME cudaLaunchKernelExC(const LaunchConfiguration* configuration, const void*, void**) {
  return launch_kernel(configuration->grid, configuration->block, configuration->stream);
}

METAPROF_RUNTIME cudaGetSymbolAddress(void** out, const void* symbol) {
  if (const Error error = use_device()) return fail(error);
  const std::lock_guard lock(variables_mutex);
  const auto found = variables().find(symbol);
  if (found == variables().end()) return fail(invalid_symbol);
  uintptr_t& address = found->second.address[current_device()];
  if (address == 0) address = borrow_addresses(current_device(), std::max<size_t>(found->second.bytes, 1));
  *out = reinterpret_cast<void*>(address);
  return success;
}
METAPROF_RUNTIME cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  const std::lock_guard lock(variables_mutex);
  const auto found = variables().find(symbol);
  if (found == variables().end()) return fail(invalid_symbol);
  *bytes = found->second.bytes;
  return success;
}

namespace {

struct FunctionAttributes {  // cudaFuncAttributes
  size_t shared_memory, constant_memory, local_memory;
  int max_threads_per_block, registers, ptx_version, binary_version, cache_mode, max_dynamic_shared_memory,
      carveout;
  int cluster[6], reserved[16];
};
static_assert(sizeof(FunctionAttributes) == 144);

}  // namespace

METAPROF_RUNTIME cudaFuncGetAttributes(FunctionAttributes* out, const void*) {
  if (const Error error = use_device()) return fail(error);
  *out = {};
  out->max_threads_per_block = 1024;
  out->registers = kAssumedRegisters;
  out->ptx_version = out->binary_version = binary_version();
  out->max_dynamic_shared_memory = 49152;
  return success;
}
METAPROF_RUNTIME cudaFuncSetAttribute(const void*, int, int) { return result(use_device()); }
METAPROF_RUNTIME cudaFuncSetCacheConfig(const void*, int) { return result(use_device()); }
METAPROF_RUNTIME cudaFuncSetSharedMemConfig(const void*, int) { return result(use_device()); }

METAPROF_RUNTIME cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads,
                                                                        size_t shared_memory, unsigned) {
  if (const Error error = use_device()) return fail(error);
  *blocks = active_blocks(threads, shared_memory);
  return success;
}
METAPROF_RUNTIME cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                               size_t shared_memory) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared_memory, 0);
}
METAPROF_RUNTIME cudaOccupancyMaxActiveClusters(int* clusters, const void*,
                                                const LaunchConfiguration* configuration) {
  if (const Error error = use_device()) return fail(error);
  const Dim3 block = configuration->block;
  *clusters = active_blocks(int(block.x * block.y * block.z), configuration->shared_memory) *
              device_description().multiprocessors / 2;
  return success;
}

METAPROF_RUNTIME cudaGetDriverEntryPoint(const char* name, void** out, uint64_t, int* status) {
  constexpr int found = 0, not_there = 1;
  *out = entry_point(name);
  // What is missing is told by the status; without one, by an error.
  if (status) *status = *out ? found : not_there;
  return *out || status ? success : fail(not_found);
}
METAPROF_RUNTIME cudaGetDriverEntryPointByVersion(const char* name, void** out, unsigned, uint64_t flags,
                                                  int* status) {
  return cudaGetDriverEntryPoint(name, out, flags, status);
}
METAPROF_RUNTIME cudaGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return fail(not_found);
}
