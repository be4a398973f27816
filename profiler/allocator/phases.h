#pragma once
// Device memory at the end of each part of the step plan, and its peak within, as an allocator sees it: the
// rows that a recording of the framework's own allocator has.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "meta/allocator/device_allocator.h"
#include "profiler/allocator/requests.h"

namespace metaprof {

struct PhaseRow {
  StepPart part;
  AllocatorNumbers numbers;
};

/// A request that failed.
struct OutOfMemory {
  size_t event = 0;  ///< index of the request
  StepPart part;
  std::string op, module;
  Bytes requested;
  Bytes allocated = {}, reserved = {};  ///< when it was made, before the error let anything go
};

struct Phases {
  std::vector<PhaseRow> rows;  ///< up to the one in which memory ran out
  std::optional<OutOfMemory> out_of_memory;
  AllocatorNumbers peak;  ///< `peak`: the largest of all rows; `current`: at the end
};

/// Says which nodes' results an error in a call of the forward lets go besides: those that only the statement at work
/// holds (nodes of the program's graph, in the order in which they go). `failed`: the node that made the call.
using WaitingResults = std::function<std::vector<size_t>(size_t failed)>;

using BeforeRequest = std::function<void(const Request&)>;

/// Feeds the storages of one device to an allocator. `waiting`: asked where memory runs out; may be empty. `repeated`:
/// how many steps follow that are as the last one; where memory runs out in one of these, `current` of its row is of no
/// meaning.
Phases replay(const Trace& trace, Device device, DeviceAllocator& allocator,
              const WaitingResults& waiting = {}, int repeated = 0);

/// As above, from the requests alone: of one that fails, operator and module are not known, nor what its error lets
/// go, so that `current` of the last row is of the moment at which it failed. Peaks are the same.
/// `before`: called before each request is made; may be empty.
Phases replay(const Requests& requests, DeviceAllocator& allocator, const BeforeRequest& before = {});

}  // namespace metaprof
