#pragma once
// A trace's steps on a real device.

#include "backends/cuda/call_execution.h"
#include "estimate/results/device/device_replay.h"
#include "meta/allocator/caching_allocator.h"
#include "meta/trace/trace.h"
#include "profiler/allocator/requests.h"

namespace metaprof::cuda {

class StepReplay {
 public:
  /// Loads kernels, cuBLAS and, if it is there, cuDNN, and takes the memory that they work in: what the device has left then is what an allocator
  /// can have.
  explicit StepReplay(const CudaDevice& device);

  /// Executes the trace: `requests`, which are its own, in their order by an allocator with these options, whose device is the
  /// real one; calls on the stream of the last request before them; streams wait as they do in the trace. A block that another
  /// stream uses is free when the device says so, where an estimate has it free at the next request. The calls of the last step
  /// are timed each.
  DeviceReplay run(const Trace& trace, const Requests& requests, const Rates& rates,
                   const CachingAllocatorOptions& options);

 private:
  const CudaDevice& device_;
  Kernels kernels_;
  Products products_;
  std::optional<Convolutions> convolutions_;  // nothing: cuDNN is not there
  DeviceBuffer scratch_;
};

}  // namespace metaprof::cuda
