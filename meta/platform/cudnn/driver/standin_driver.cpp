// A driver library (libcuda.so.1) that owns no device and runs nothing. cuDNN's engines that are compiled at
// run time look for a driver before they say what they would do, and leave themselves out, silently, where
// there is none or where a single name is missing. Handing over code is accepted and forgotten; everything
// that would need a device is refused.

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace {

enum Result : int { success = 0, not_found = 500, not_supported = 801 };

void* next_handle() {
  static uintptr_t last = 0x1000;
  last += 16;
  return reinterpret_cast<void*>(last);
}

Result refuse() { return not_supported; }

}  // namespace

// The framework's names, which nothing here declares.
#define DRIVER(name) extern "C" __attribute__((visibility("default"))) Result name
#define GIVES_A_HANDLE(name)    \
  DRIVER(name)(void** handle) { \
    *handle = next_handle();    \
    return success;             \
  }
#define REFUSES(name) \
  DRIVER(name)() { return not_supported; }

DRIVER(cuInit)(unsigned) { return success; }
DRIVER(cuDriverGetVersion)(int* version) {
  *version = 13000;
  return success;
}
DRIVER(cuDeviceGetCount)(int* count) {
  *count = 1;
  return success;
}
DRIVER(cuModuleGetLoadingMode)(int* mode) {
  *mode = 2;
  return success;
}
DRIVER(cuModuleUnload)(void*) { return success; }
DRIVER(cuLibraryUnload)(void*) { return success; }
DRIVER(cuGetErrorString)(int, const char** text) {
  *text = "refused by a stand-in driver";
  return success;
}
DRIVER(cuGetErrorName)(int, const char** text) {
  *text = "REFUSED";
  return success;
}
// Called without being looked at first.
DRIVER(cuGetExportTable)(const void** table, const unsigned char*) {
  *table = nullptr;
  return not_found;
}

GIVES_A_HANDLE(cuModuleLoad)
GIVES_A_HANDLE(cuModuleLoadData)
GIVES_A_HANDLE(cuModuleLoadDataEx)
GIVES_A_HANDLE(cuModuleLoadFatBinary)
GIVES_A_HANDLE(cuModuleGetFunction)
GIVES_A_HANDLE(cuLibraryLoadData)
GIVES_A_HANDLE(cuLibraryLoadFromFile)
GIVES_A_HANDLE(cuLibraryGetKernel)
GIVES_A_HANDLE(cuLibraryGetModule)
GIVES_A_HANDLE(cuKernelGetFunction)

REFUSES(cuDeviceGet)
REFUSES(cuDeviceGetAttribute)
REFUSES(cuDeviceGetName)
REFUSES(cuDeviceTotalMem_v2)
REFUSES(cuDevicePrimaryCtxRetain)
REFUSES(cuCtxGetCurrent)
REFUSES(cuCtxSetCurrent)
REFUSES(cuCtxGetDevice)
REFUSES(cuCtxGetLimit)
REFUSES(cuCtxPushCurrent)
REFUSES(cuCtxPopCurrent)
REFUSES(cuCtxSynchronize)
REFUSES(cuStreamGetCtx)
REFUSES(cuStreamIsCapturing)
REFUSES(cuFuncGetAttribute)
REFUSES(cuFuncSetAttribute)
REFUSES(cuKernelGetAttribute)
REFUSES(cuKernelSetAttribute)
REFUSES(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSES(cuOccupancyMaxActiveClusters)
REFUSES(cuOccupancyMaxPotentialClusterSize)
REFUSES(cuLaunchKernel)
REFUSES(cuLaunchKernelEx)
REFUSES(cuLaunchCooperativeKernel)
REFUSES(cuModuleGetGlobal_v2)
REFUSES(cuMemcpyDtoH_v2)
REFUSES(cuMemGetInfo_v2)
REFUSES(cuLinkCreate)
REFUSES(cuLinkCreate_v2)
REFUSES(cuLinkAddData)
REFUSES(cuLinkAddData_v2)
REFUSES(cuLinkAddFile_v2)
REFUSES(cuLinkComplete)
REFUSES(cuLinkDestroy)
REFUSES(cuTensorMapEncodeTiled)
REFUSES(cuTensorMapEncodeIm2col)

// A name that is not here gets a function that refuses.
DRIVER(cuGetProcAddress_v2)(const char* name, void** function, int, unsigned long long, int* found) {
  *function = nullptr;
  if (void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
    *function = dlsym(self, (std::string(name) + "_v2").c_str());
    if (!*function) *function = dlsym(self, name);
    dlclose(self);
  }
  if (!*function) *function = reinterpret_cast<void*>(&refuse);
  if (found) *found = 0;
  return success;
}
DRIVER(cuGetProcAddress)(const char* name, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
