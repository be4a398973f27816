#include "backends/cuda/api.h"

#include <fmt/format.h>

#include <iterator>

namespace metaprof::cuda {
namespace {

// The first that can be loaded. Errors: none can; the message ends with `advice`.
template <size_t kCount>
DynamicLibrary load(const char* const (&names)[kCount], const char* advice) {
  for (size_t i = 0;; ++i) {
    try {
      return DynamicLibrary(names[i]);
    } catch (const Error& error) {
      if (i + 1 == kCount) fail("{}; {}", error.what(), advice);
    }
  }
}

const DynamicLibrary& driver_library() {
  static constexpr const char* kNames[] = {"libcuda.so.1"};
  static const DynamicLibrary library =
      load(kNames, "there is no CUDA driver here: this command needs an NVIDIA GPU and its driver");
  return library;
}

const DynamicLibrary& cublas_library() {
  static constexpr const char* kNames[] = {"libcublas.so.13", "libcublas.so.12"};
  static const DynamicLibrary library = load(kNames,
                                             "LD_LIBRARY_PATH must name the folder with cuBLAS: that of a "
                                             "CUDA toolkit, or nvidia/cu13/lib of a Python "
                                             "environment with PyTorch");
  return library;
}

}  // namespace

CudaError::CudaError(const char* call, int status, const std::string& meaning)
    : Error(fmt::format("{}: {}", call, meaning)), status_(status) {}

void throw_failed(const char* call, CUresult status) {
  const char *name = nullptr, *text = nullptr;
  driver().cuGetErrorName.try_to(status, &name);
  driver().cuGetErrorString.try_to(status, &text);
  throw CudaError(
      call, status,
      name ? fmt::format("{} ({})", name, text ? text : "") : fmt::format("error {}", int(status)));
}

void throw_failed(const char* call, cublasStatus_t status) {
  using Name = const char*(cublasStatus_t);
  throw CudaError(call, status, cublas().library.function<Name>("cublasGetStatusName")(status));
}

Driver::Driver(const DynamicLibrary& loaded) : library(loaded) {}
Cublas::Cublas(const DynamicLibrary& loaded) : library(loaded) {}

const Driver& driver() {
  static const Driver functions(driver_library());
  return functions;
}

const Cublas& cublas() {
  static const Cublas functions(cublas_library());
  return functions;
}

}  // namespace metaprof::cuda
