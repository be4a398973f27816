#pragma once
// A real device, and what is made on it: memory, streams and events that go with their objects. One device is in use in a
// process; its context is that of cudaSetDevice.

#include <cstdint>
#include <string>

#include "backends/cuda/api.h"
#include "meta/platform/hardware.h"

namespace metaprof::cuda {

/// "0000:1B:00.0": what other libraries call the device. Makes no context. Errors: there is no driver or no such device.
std::string pci_bus_id(int ordinal);

struct DeviceMemoryInfo {
  int64_t available = 0, total = 0;  ///< bytes, as cudaMemGetInfo says them
  int64_t used() const { return total - available; }
};

class CudaDevice {
 public:
  /// Makes the device's context and makes it current. Errors: there is no driver or no such device.
  explicit CudaDevice(int ordinal);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  int ordinal() const { return ordinal_; }
  /// "NVIDIA H200"
  std::string title() const;
  int attribute(CUdevice_attribute attribute) const;
  /// The device as estimates see it: what the driver says, and the rates of the data sheet if the device is a known one.
  Hardware hardware() const;
  DeviceMemoryInfo memory() const;
  /// Its driver is our stand-in: nothing is computed, and times mean nothing.
  bool is_emulated() const;
  /// 13000 is 13.0: the newest CUDA that the driver knows.
  int driver_version() const;
  CUdevice handle() const { return device_; }
  void synchronize() const { driver().cuCtxSynchronize(); }

 private:
  int ordinal_;
  CUdevice device_ = 0;
};

class DeviceBuffer {
 public:
  explicit DeviceBuffer(uint64_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  CUdeviceptr address() const { return address_; }

 private:
  CUdeviceptr address_ = 0;
};

/// One that does not wait for the default stream, as those of PyTorch.
class CudaStream {
 public:
  CudaStream();
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  CUstream handle() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

/// A moment in a stream, once it is recorded.
class CudaEvent {
 public:
  CudaEvent();
  ~CudaEvent();
  CudaEvent(CudaEvent&& other) noexcept;
  CudaEvent& operator=(CudaEvent&&) = delete;
  void record(CUstream stream) const { driver().cuEventRecord(event_, stream); }
  void wait_in(CUstream stream) const;
  void synchronize() const { driver().cuEventSynchronize(event_); }
  bool is_over() const;
  /// Both must be over.
  double seconds_since(const CudaEvent& earlier) const;

 private:
  CUevent event_ = nullptr;
};

}  // namespace metaprof::cuda
