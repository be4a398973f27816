#pragma once
// One call of a trace on the device: a kernel of the same cost where its operands lie.

#include <vector>

#include "backends/cuda/convolutions.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/products.h"
#include "estimate/results/device/device_replay.h"
#include "opcount/rates.h"

namespace metaprof::cuda {

/// Where storages are, by number; those that are not on the device have no bytes.
struct Placed {
  CUdeviceptr address = 0;
  uint64_t bytes = 0;
};
using Placements = std::vector<Placed>;

class CallExecution {
 public:
  /// All must outlive it. `convolutions`: null where cuDNN is not there. `trace`: whose calls are executed; strides are not in it, so factors count as stored row by row.
  CallExecution(const Trace& trace, const Rates& rates, const Kernels& kernels, Products& products,
                Convolutions* convolutions, CUdeviceptr scratch, uint64_t scratch_bytes)
      : trace_(trace),
        rates_(rates),
        kernels_(kernels),
        products_(products),
        convolutions_(convolutions),
        scratch_(scratch),
        scratch_bytes_(scratch_bytes) {}

  /// `cost`: not nothing.
  ReplayedAs run(const CallRecord& call, const CallCost& cost, const Placements& placed, CUstream stream);

 private:
  /// A tensor's part of its storage.
  struct Operand {
    const TensorRecord* tensor = nullptr;
    Placed place;        ///< its whole storage
    uint64_t bytes = 0;  ///< of the tensor, at most of the storage
  };
  std::vector<Operand> operands(uint32_t first, uint32_t count, const Placements& placed) const;
  bool run_product(const CallRecord& call, const CallCost& cost, const std::vector<Operand>& inputs,
                   const std::vector<Operand>& outputs, CUstream stream);
  bool run_convolution(const CallRecord& call, const std::vector<Operand>& inputs,
                       const std::vector<Operand>& outputs, CUstream stream);
  bool run_copy(const CallRecord& call, const std::vector<Operand>& inputs,
                const std::vector<Operand>& outputs, CUstream stream);
  bool run_same_flops(const CallRecord& call, const CallCost& cost, const std::vector<Operand>& inputs,
                      CUstream stream);
  void run_same_bytes(const CallCost& cost, const std::vector<Operand>& inputs,
                      const std::vector<Operand>& outputs, CUstream stream);

  const Trace& trace_;
  const Rates& rates_;
  const Kernels& kernels_;
  Products& products_;
  Convolutions* convolutions_;
  CUdeviceptr scratch_;
  uint64_t scratch_bytes_;
};

}  // namespace metaprof::cuda
