#include "backends/cuda/measure_memory.h"

#include "backends/cuda/device.h"
#include "core/error.h"

namespace metaprof::cuda {
namespace {

// What the device's used memory grows by from one call to the next.
class Growth {
 public:
  Growth(const CudaDevice& device, std::optional<int64_t> before, std::vector<MemoryGrowth>& rows)
      : device_(device), last_(before.value_or(0)), rows_(rows) {}
  void note(const char* what) {
    rows_.push_back({what, {device_.memory().used() - last_}});
    skip();
  }
  /// What was taken since the last call does not count.
  void skip() { last_ = device_.memory().used(); }

 private:
  const CudaDevice& device_;
  int64_t last_;
  std::vector<MemoryGrowth>& rows_;
};

// Bytes that the device has less after an allocation of so many.
int64_t taken_by(const CudaDevice& device, int64_t bytes) {
  const int64_t before = device.memory().used();
  const DeviceBuffer buffer(static_cast<uint64_t>(bytes));
  return device.memory().used() - before;
}

Granularities granularities(const CudaDevice& device) {
  CUmemAllocationProp kind = {};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  kind.location.id = device.ordinal();
  const auto page = [&](CUmemAllocationGranularity_flags which) {
    size_t bytes = 0;
    driver().cuMemGetAllocationGranularity(&bytes, &kind, which);
    return Bytes{static_cast<int64_t>(bytes)};
  };
  return {.malloc_least = {taken_by(device, 1)},
          .malloc_step = {taken_by(device, 2 * kMebibyte + 1) - 2 * kMebibyte},
          .mapped_least = page(CU_MEM_ALLOC_GRANULARITY_MINIMUM),
          .mapped_recommended = page(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)};
}

// cuBLAS loads the kernels of a product when it is first asked for it.
void multiply_once(Products& products, Kernels& kernels, CUdeviceptr scratch, uint64_t bytes) {
  const Region whole{scratch, bytes, bytes};
  kernels.spend({}, {&whole, 1}, 0, nullptr);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    products.run({.batch = 1, .rows = 512, .columns = 512, .inner = 512, .dtype = dtype}, scratch,
                 scratch + bytes / 3, scratch + bytes / 3 * 2, nullptr);
}

// cudnnCreate, by name: cuDNN's header is not needed for it. 0: the library is not there.
int create_cudnn() {
  try {
    const DynamicLibrary library("libcudnn.so.9");
    void* handle = nullptr;  // lives as long as the process
    if (library.function<int(void**)>("cudnnCreate")(&handle) != 0) return 0;
    return static_cast<int>(library.function<size_t()>("cudnnGetVersion")());
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace

DeviceInUse measure_memory(int ordinal, const Nvml& nvml, DeviceMeasurement& out) {
  DeviceInUse in_use;
  const std::optional<int64_t> before = nvml.used_memory();
  in_use.device = std::make_unique<CudaDevice>(ordinal);
  const CudaDevice& device = *in_use.device;
  Growth growth(device, before, out.outside);
  out.others_counted = !before.has_value();
  growth.note("context");
  out.hardware = device.hardware();
  in_use.kernels = std::make_unique<Kernels>(device);
  growth.note("our own kernels");
  in_use.products = std::make_unique<Products>();
  growth.note("cuBLAS: handle");
  out.cublas = in_use.products->version();
  {
    const DeviceBuffer scratch(6 * kMebibyte);
    growth.skip();
    multiply_once(*in_use.products, *in_use.kernels, scratch.address(), 6 * kMebibyte);
    device.synchronize();
    growth.note("cuBLAS: kernels of products in f32, bf16 and f16");
  }
  growth.skip();
  out.libraries.cudnn = create_cudnn();
  if (out.libraries.cudnn > 0) growth.note("cuDNN: handle");
  out.granularities = granularities(device);
  return in_use;
}

}  // namespace metaprof::cuda
