#pragma once
// A step that was executed on a real device: the requests of the estimate's trace through the caching allocator, whose
// segments are memory of the device, and for each call a kernel of the same cost.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "meta/allocator/device_memory.h"
#include "profiler/allocator/phases.h"

namespace metaprof {

/// What stands on the device for a call.
enum class ReplayedAs : uint8_t {
  product,      ///< the same product, by cuBLAS
  convolution,  ///< the same convolution, by cuDNN's first plan
  copy,         ///< the same copy, by cudaMemcpyAsync
  same_flops,   ///< a product of as many FLOPs in the same type, for convolutions and attention
  same_bytes  ///< a kernel of ours that reads and writes as many bytes where the operands lie, and computes as many FLOPs
};
inline constexpr size_t kReplayedAs = 5;
/// "cuBLAS product"
std::string_view to_string(ReplayedAs);
/// Whether the device does what the framework has it do; else a stand-in.
constexpr bool is_real(ReplayedAs as) { return as < ReplayedAs::same_flops; }

/// Calls of the last step. `seconds`: of their kernels on the device; nothing where no time passes on it.
struct ReplayedCalls {
  int64_t calls = 0;
  Flops flops;
  Bytes moved;
  double expected = 0;  ///< seconds, by the estimate
  std::optional<double> seconds;
};

struct ReplayedOp {
  std::string op;  ///< "aten.addmm"
  ReplayedAs as = ReplayedAs::same_bytes;
  ReplayedCalls total;
};

/// What was asked of the driver.
struct SegmentCalls {
  int64_t allocations = 0, frees = 0;  ///< cudaMalloc and cudaFree
  int64_t mapped = 0, unmapped = 0;    ///< pages: cuMemCreate with cuMemMap, and back
  int64_t refused = 0;                 ///< the device was full
};

/// A part of the step plan; one for each row of `phases`.
struct ReplayedPart {
  Bytes most_used;      ///< of the device's memory, by all: cudaMemGetInfo
  double expected = 0;  ///< seconds, by the estimate
  std::optional<double> seconds;
};

struct DeviceReplay {
  std::string title;  ///< of the device
  int ordinal = 0;
  int driver = 0, cublas = 0,
      cudnn = 0;  ///< versions: 13000 is 13.0, 130100 is 13.1.0, 91900 is 9.19.0; 0: not there
  Bytes memory;   ///< of the device
  Bytes used_before,
      used_after;  ///< of it outside the allocator: contexts, libraries, other processes; before and behind the steps
  std::shared_ptr<const GivenAddresses> addresses;  ///< that the driver gave
  int64_t waited = 0;  ///< blocks that were freed while another stream's work on them was not over
  Phases phases;       ///< of the allocator on the device
  std::vector<ReplayedPart> parts;
  Bytes most_used;  ///< the largest of the parts
  SegmentCalls segments;
  std::array<ReplayedCalls, kReplayedAs> by_kind;
  std::vector<ReplayedOp> by_op;  ///< the longest first
};

/// The estimate beside it.
struct ReplayComparison {
  std::string model;
  std::string allocator;  ///< settings; empty: none
  Phases estimated;       ///< with as much memory as the device had left
  DeviceReplay real;
  /// Of memory: "step 1 backward: reserved_bytes.peak: estimated …, real …".
  std::vector<std::string> differences;
  /// The same of an estimate that is told what the driver decided: the addresses of segments (which of two equal free blocks is
  /// taken follows from addresses, and the driver's depend on all that the process has mapped), and what was taken outside the
  /// allocator during the steps.
  std::vector<std::string> differences_at_addresses;
};

/// "step 1 backward"
std::string to_string(const StepPart& part);

/// In the requests' rows, the allocator's numbers and out of memory.
std::vector<std::string> differences(const Phases& estimated, const Phases& real);

}  // namespace metaprof
