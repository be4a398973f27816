#include "backends/cuda/device.h"

#include <algorithm>
#include <utility>

#include "core/host_memory.h"

namespace metaprof::cuda {
namespace {

// Lanes of a multiprocessor for f32 (CUDA programming guide, throughput of arithmetic instructions).
int lanes_of(int sm) { return sm < 86 ? 64 : 128; }

// Two transfers a cycle on a bus of this width.
double bandwidth_of(int64_t memory_clock_khz, int bus_bits) {
  return 2.0 * 1000.0 * static_cast<double>(memory_clock_khz) * bus_bits / 8;
}

CUdevice device_numbered(int ordinal) {
  driver().cuInit(0);
  int count = 0;
  driver().cuDeviceGetCount(&count);
  if (count == 0) fail("there is no CUDA device here: this command needs an NVIDIA GPU");
  if (ordinal >= count) fail("--device {}: there are devices 0 to {}", ordinal, count - 1);
  CUdevice device = 0;
  driver().cuDeviceGet(&device, ordinal);
  return device;
}

}  // namespace

std::string pci_bus_id(int ordinal) {
  char text[64] = {};
  driver().cuDeviceGetPCIBusId(text, sizeof text, device_numbered(ordinal));
  return text;
}

CudaDevice::CudaDevice(int ordinal) : ordinal_(ordinal), device_(device_numbered(ordinal)) {
  // The driver gives memory of the device addresses of this process, which the limit of its own memory would count.
  lift_host_memory_limit();
  CUcontext context = nullptr;
  driver().cuDevicePrimaryCtxRetain(&context, device_);
  driver().cuCtxSetCurrent(context);
}

CudaDevice::~CudaDevice() { driver().cuDevicePrimaryCtxRelease.try_to(device_); }

std::string CudaDevice::title() const {
  char name[256] = {};
  driver().cuDeviceGetName(name, sizeof name, device_);
  return name;
}

int CudaDevice::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  driver().cuDeviceGetAttribute(&value, attribute, device_);
  return value;
}

int CudaDevice::driver_version() const {
  int version = 0;
  driver().cuDriverGetVersion(&version);
  return version;
}

bool CudaDevice::is_emulated() const {
  try {
    return driver().library.function<uint64_t(const char*, int)>("metaprof_emulator_count") != nullptr;
  } catch (const Error&) {
    return false;
  }
}

DeviceMemoryInfo CudaDevice::memory() const {
  size_t available = 0, total = 0;
  driver().cuMemGetInfo(&available, &total);
  return {static_cast<int64_t>(available), static_cast<int64_t>(total)};
}

Hardware CudaDevice::hardware() const {
  const std::string driver_title = title();
  const auto known = std::ranges::find(known_hardware(), driver_title, &Hardware::title);
  Hardware out = known != known_hardware().end() ? *known : Hardware();
  if (out.name.empty()) out.name = "device";
  out.title = driver_title;
  out.sm = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
           attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  out.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  out.threads_per_multiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  out.blocks_per_multiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  out.shared_memory_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  out.memory = {memory().total};
  out.l2_cache = {attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)};
  out.clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  out.memory_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  if (known == known_hardware().end()) {  // what data sheets say follows from these
    out.bandwidth =
        bandwidth_of(out.memory_clock_khz, attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH));
    out.flops_f32 =
        2.0 * 1000.0 * static_cast<double>(out.clock_khz) * lanes_of(out.sm) * out.multiprocessors;
  }
  return out;
}

DeviceBuffer::DeviceBuffer(uint64_t bytes) { driver().cuMemAlloc(&address_, bytes); }
DeviceBuffer::~DeviceBuffer() { driver().cuMemFree.try_to(address_); }

CudaStream::CudaStream() { driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING); }
CudaStream::~CudaStream() { driver().cuStreamDestroy.try_to(stream_); }

CudaEvent::CudaEvent() { driver().cuEventCreate(&event_, CU_EVENT_DEFAULT); }
CudaEvent::~CudaEvent() {
  if (event_) driver().cuEventDestroy.try_to(event_);
}
CudaEvent::CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

bool CudaEvent::is_over() const {
  const CUresult status = driver().cuEventQuery.try_to(event_);
  if (status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY) throw_failed("cuEventQuery", status);
  return status == CUDA_SUCCESS;
}

void CudaEvent::wait_in(CUstream stream) const { driver().cuStreamWaitEvent(stream, event_, 0); }

double CudaEvent::seconds_since(const CudaEvent& earlier) const {
  float milliseconds = 0;
  driver().cuEventElapsedTime(&milliseconds, earlier.event_, event_);
  return milliseconds / 1000.0;
}

}  // namespace metaprof::cuda
