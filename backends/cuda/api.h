#pragma once
// CUDA's libraries, loaded when somebody first needs them. A function throws if it does not succeed, with its own name and
// CUDA's name of the error, unless it is called through `try_to`.

#include <cublas_v2.h>
#include <cuda.h>

#include <string>

#include "core/dynamic_library.h"
#include "core/error.h"

namespace metaprof::cuda {

/// A call of CUDA that failed. The message: "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
class CudaError : public Error {
 public:
  CudaError(const char* call, int status, const std::string& meaning);
  /// Of the library's own type: CUresult, cublasStatus_t.
  int status() const { return status_; }

 private:
  int status_;
};

[[noreturn]] void throw_failed(const char* call, CUresult status);
[[noreturn]] void throw_failed(const char* call, cublasStatus_t status);

template <class Signature>
class Function;

template <class Status, class... Parameters>
class Function<Status(Parameters...)> {
 public:
  /// Errors: the library has no such function.
  Function(const DynamicLibrary& library, const char* name)
      : name_(name), call_(library.function<Status(Parameters...)>(name)) {}

  void operator()(Parameters... values) const {
    const Status status = call_(values...);
    if (status != Status{}) throw_failed(name_, status);
  }
  Status try_to(Parameters... values) const { return call_(values...); }

 private:
  const char* name_;
  Status (*call_)(Parameters...);
};

// Headers give another name to functions of which there are several versions (cuMemAlloc is cuMemAlloc_v2): the lists are
// expanded twice, so that members and symbols are called as the header says.
#define METAPROF_MEMBER(function) METAPROF_MEMBER_CALLED(function)
#define METAPROF_MEMBER_CALLED(function) \
  Function<decltype(::function)> function { library, #function }

/// libcuda.so.1
struct Driver {
  explicit Driver(const DynamicLibrary& library);

  const DynamicLibrary& library;
  METAPROF_MEMBER(cuInit);
  METAPROF_MEMBER(cuDriverGetVersion);
  METAPROF_MEMBER(cuGetErrorName);
  METAPROF_MEMBER(cuGetErrorString);
  METAPROF_MEMBER(cuDeviceGetCount);
  METAPROF_MEMBER(cuDeviceGet);
  METAPROF_MEMBER(cuDeviceGetName);
  METAPROF_MEMBER(cuDeviceGetAttribute);
  METAPROF_MEMBER(cuDeviceGetPCIBusId);
  METAPROF_MEMBER(cuDeviceCanAccessPeer);
  METAPROF_MEMBER(cuDevicePrimaryCtxRetain);
  METAPROF_MEMBER(cuDevicePrimaryCtxRelease);
  METAPROF_MEMBER(cuCtxSetCurrent);
  METAPROF_MEMBER(cuCtxSynchronize);
  METAPROF_MEMBER(cuCtxGetLimit);
  METAPROF_MEMBER(cuMemGetInfo);
  METAPROF_MEMBER(cuMemAlloc);
  METAPROF_MEMBER(cuMemFree);
  METAPROF_MEMBER(cuMemAllocHost);
  METAPROF_MEMBER(cuMemFreeHost);
  METAPROF_MEMBER(cuMemAddressReserve);
  METAPROF_MEMBER(cuMemAddressFree);
  METAPROF_MEMBER(cuMemCreate);
  METAPROF_MEMBER(cuMemRelease);
  METAPROF_MEMBER(cuMemMap);
  METAPROF_MEMBER(cuMemUnmap);
  METAPROF_MEMBER(cuMemSetAccess);
  METAPROF_MEMBER(cuMemGetAllocationGranularity);
  METAPROF_MEMBER(cuMemcpyDtoDAsync);
  METAPROF_MEMBER(cuMemcpyHtoDAsync);
  METAPROF_MEMBER(cuMemcpyDtoHAsync);
  METAPROF_MEMBER(cuMemsetD8Async);
  METAPROF_MEMBER(cuModuleLoadData);
  METAPROF_MEMBER(cuModuleUnload);
  METAPROF_MEMBER(cuModuleGetFunction);
  METAPROF_MEMBER(cuLaunchKernel);
  METAPROF_MEMBER(cuStreamCreate);
  METAPROF_MEMBER(cuStreamDestroy);
  METAPROF_MEMBER(cuStreamSynchronize);
  METAPROF_MEMBER(cuStreamWaitEvent);
  METAPROF_MEMBER(cuEventCreate);
  METAPROF_MEMBER(cuEventDestroy);
  METAPROF_MEMBER(cuEventRecord);
  METAPROF_MEMBER(cuEventQuery);
  METAPROF_MEMBER(cuEventSynchronize);
  METAPROF_MEMBER(cuEventElapsedTime);
};

/// libcublas.so.13, or the one of CUDA 12
struct Cublas {
  explicit Cublas(const DynamicLibrary& library);

  const DynamicLibrary& library;
  METAPROF_MEMBER(cublasCreate);
  METAPROF_MEMBER(cublasDestroy);
  METAPROF_MEMBER(cublasSetStream);
  METAPROF_MEMBER(cublasSetWorkspace);
  METAPROF_MEMBER(cublasGetVersion);
  METAPROF_MEMBER(cublasGemmEx_64);
  METAPROF_MEMBER(cublasGemmStridedBatchedEx_64);
};

#undef METAPROF_MEMBER
#undef METAPROF_MEMBER_CALLED

/// Errors: there is no driver.
const Driver& driver();
/// Errors: it cannot be loaded.
const Cublas& cublas();

}  // namespace metaprof::cuda
