#pragma once
// Our own kernels (kernels.cu). They are embedded as PTX, which the driver compiles for its device.

#include <array>
#include <cstdint>
#include <span>

#include "backends/cuda/device.h"

namespace metaprof::cuda {

struct Regions;

/// Device memory that is read or written.
struct Region {
  CUdeviceptr address = 0;  ///< a multiple of 16
  uint64_t bytes = 0;       ///< that are there
  uint64_t amount = 0;      ///< to be read or written; beyond `bytes`, its beginning again
};

class Kernels {
 public:
  explicit Kernels(const CudaDevice& device);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  /// Reads and writes these regions, and computes `flops` in f32, in as few launches as their number allows (one for 64).
  /// Returns the number of launches.
  int spend(std::span<const Region> reads, std::span<const Region> writes, double flops,
            CUstream stream) const;

  /// The sum of two tensors of `bytes`, with loads of 2, 4, 8 or 16 bytes.
  void add(int bytes_per_load, CUdeviceptr left, CUdeviceptr right, CUdeviceptr result, uint64_t bytes,
           CUstream stream) const;

 private:
  void launch(std::span<const Region> reads, std::span<const Region> writes, double flops,
              CUstream stream) const;
  /// Sets the blocks of each region; returns how many there are.
  int deal_blocks(Regions& regions, uint64_t words) const;

  CUmodule module_ = nullptr;
  CUfunction spend_ = nullptr;
  std::array<CUfunction, 4> add_ = {};  ///< by the logarithm of the width, from 2 bytes on
  int64_t most_blocks_;
};

}  // namespace metaprof::cuda
