#include "backends/cuda/measure/measure_memory.h"

#include <memory>
#include <vector>

#include "backends/cuda/device.h"
#include "core/error.h"

namespace metaprof::cuda {
namespace {

// What the device has less from one call to the next.
class Growth {
 public:
  /// Without `before`, what all have in use counts.
  Growth(const CudaDevice& device, std::optional<int64_t> before, std::vector<MemoryGrowth>& rows)
      : device_(device), last_(before.value_or(device.memory().total)), rows_(rows) {}
  void note(const char* what) {
    rows_.push_back({what, {last_ - device_.memory().available}});
    skip();
  }
  /// What was taken since the last call does not count.
  void skip() { last_ = device_.memory().available; }

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

// What the device has less when small pieces need memory of their own: the driver packs them, so the first ones may lie where
// others left room.
int64_t least_taken(const CudaDevice& device) {
  constexpr int64_t piece = kMebibyte / 2, most = 64;
  std::vector<std::unique_ptr<DeviceBuffer>> pieces;
  const int64_t before = device.memory().used();
  while (device.memory().used() == before && std::ssize(pieces) < most)
    pieces.push_back(std::make_unique<DeviceBuffer>(static_cast<uint64_t>(piece)));
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
  return {.malloc_least = {least_taken(device)},
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

// cuDNN, too, loads kernels when they are first needed. Nothing: it is not there.
std::unique_ptr<Convolutions> make_convolutions(Growth& growth) {
  try {
    auto made = std::make_unique<Convolutions>();
    growth.note("cuDNN: handle");
    return made;
  } catch (const Error&) {
    return nullptr;
  }
}

void convolve_once(Convolutions& convolutions, CUdeviceptr scratch, int64_t bytes) {
  const std::vector<int64_t> x = {4, 16, 32, 32}, w = {16, 16, 3, 3};
  ConvolutionQuestion question = convolution_between(x, w, x, DType::f32).value();
  const auto third = static_cast<CUdeviceptr>(bytes / 4);
  const ConvolutionOperands operands{.x = scratch, .w = scratch + third, .y = scratch + 2 * third};
  for (const PlannedOp op : kPlannedOps) {
    question.op = op;
    convolutions.run(question, operands, scratch + 3 * third, bytes / 4, nullptr);
  }
}

}  // namespace

DeviceInUse measure_memory(int ordinal, std::optional<int64_t> free_before, DeviceMeasurement& out) {
  DeviceInUse in_use;
  in_use.device = std::make_unique<CudaDevice>(ordinal);
  const CudaDevice& device = *in_use.device;
  Growth growth(device, free_before, out.outside);
  out.others_counted = !free_before.has_value();
  growth.note("context");
  out.hardware = device.hardware();
  in_use.kernels = std::make_unique<Kernels>(device);
  growth.note("our own kernels");
  in_use.products = std::make_unique<Products>();
  growth.note("cuBLAS: handle");
  out.cublas = in_use.products->version();
  {
    constexpr int64_t bytes = 12 * kMebibyte;
    const DeviceBuffer scratch(bytes);
    growth.skip();
    multiply_once(*in_use.products, *in_use.kernels, scratch.address(), bytes);
    device.synchronize();
    growth.note("cuBLAS: kernels of products in f32, bf16 and f16");
    in_use.convolutions = make_convolutions(growth);
    if (in_use.convolutions) {
      convolve_once(*in_use.convolutions, scratch.address(), bytes);
      device.synchronize();
      growth.note("cuDNN: kernels of a convolution and its gradients in f32");
      out.libraries.cudnn = in_use.convolutions->version();
    }
  }
  out.granularities = granularities(device);
  return in_use;
}

}  // namespace metaprof::cuda
