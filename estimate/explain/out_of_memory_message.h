#pragma once
// The message of PyTorch's caching allocator when a request cannot be served, read back from a pasted text.
//
// Sources: c10/cuda/CUDACachingAllocator.cpp of PyTorch 1.4 to 2.15. There are two wordings: up to 2.0 the numbers stand in
// brackets after the GPU's; from 2.1 on they are sentences, and other processes are listed.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"

namespace metaprof {

/// Another process, or, in a container, this one: there the driver's numbers of processes are not the container's.
struct ProcessOnDevice {
  int64_t number = 0;
  Bytes bytes;
};

/// Amounts are rounded to two decimals of their unit, as the message has them.
struct OutOfMemoryMessage {
  int gpu = 0;
  Bytes asked, capacity, free;
  Bytes allocated;               ///< to tensors, by this process
  Bytes cached;                  ///< reserved by this process, but not allocated
  Bytes in_private_pools;        ///< of `allocated`: memory of CUDA graphs
  std::optional<Bytes> allowed;  ///< by set_per_process_memory_fraction; nothing: all
  std::optional<Bytes>
      this_process;  ///< with what lies outside the allocator; nothing: the message does not say it
  std::vector<ProcessOnDevice> others;
  bool before_2_1 = false;  ///< PyTorch's version, by the wording

  Bytes reserved() const { return allocated + cached; }
};

struct OutOfMemoryMessages {
  OutOfMemoryMessage last;
  size_t count = 0;
};

/// The last message of a text, which may be a whole log and may have been wrapped into lines. Nothing: there is none.
/// Errors: what follows "Tried to allocate" is no message of PyTorch, or one that was cut off.
std::optional<OutOfMemoryMessages> read_out_of_memory_messages(std::string_view text);

}  // namespace metaprof
