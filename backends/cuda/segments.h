#pragma once
// The caching allocator's segments as memory of a real device.

#include <cstdint>
#include <map>
#include <vector>

#include "backends/cuda/device.h"
#include "estimate/results/device/device_replay.h"
#include "meta/allocator/device_memory.h"

namespace metaprof::cuda {

/// Gives all back at its end. Errors: the driver refuses for another reason than that the device is full.
class CudaSegments final : public MemorySource {
 public:
  explicit CudaSegments(const CudaDevice& device);
  ~CudaSegments() override;
  CudaSegments(const CudaSegments&) = delete;
  CudaSegments& operator=(const CudaSegments&) = delete;

  std::optional<uint64_t> allocate(uint64_t bytes) override;
  void free(uint64_t address, uint64_t bytes) override;
  uint64_t reserve_addresses(uint64_t bytes) override;
  void release_addresses(uint64_t address, uint64_t bytes) override;
  bool map(uint64_t address, uint64_t bytes, uint64_t page) override;
  void unmap(uint64_t address, uint64_t bytes, uint64_t page) override;
  uint64_t unused() const override { return static_cast<uint64_t>(device_.memory().available); }

  const SegmentCalls& calls() const { return calls_; }
  /// All that were given so far, in their order.
  const GivenAddresses& addresses() const { return addresses_; }
  /// cudaMemGetInfo: the most that was in use after any of these calls since the last reset.
  int64_t most_used() const { return most_used_; }
  void reset_most_used() { most_used_ = device_.memory().used(); }

 private:
  bool map_page(uint64_t address, uint64_t page);
  void unmap_page(uint64_t address, uint64_t page);
  void note_use();

  const CudaDevice& device_;
  CUmemAllocationProp kind_ = {};
  CUmemAccessDesc access_ = {};
  SegmentCalls calls_;
  GivenAddresses addresses_;
  int64_t most_used_ = 0;
  std::map<uint64_t, uint64_t> segments_;  // address -> bytes
  std::map<uint64_t, uint64_t> reserved_;  // address space: address -> bytes
  std::map<uint64_t, std::pair<uint64_t, CUmemGenericAllocationHandle>>
      pages_;  // address -> bytes and memory
};

}  // namespace metaprof::cuda
