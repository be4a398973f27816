#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace metaprof {

// Why a request failed; sizes in bytes.
struct FailedRequest {
  std::uint64_t requested = 0;                          // size of the block that was needed
  std::uint64_t segment = 0;                            // what was asked of the device
  std::uint64_t capacity = 0;                           // of the device
  std::uint64_t unused = 0;                             // of the device
  std::optional<std::uint64_t> allowed = std::nullopt;  // by the memory fraction, if below 1
  std::uint64_t allocated = 0;                          // held by the program
  std::uint64_t cached_in_private_pools = 0;
  std::uint64_t reserved = 0;  // held by the allocator
  int device_index = 0;
  bool above_limit = false;  // more than 2^60 bytes were asked for, which is refused unseen

  // The first line of torch.OutOfMemoryError. What NVML would say of this process is left out.
  std::string message() const;
};

// As the framework writes sizes in messages: "24.00 MiB", "512 bytes".
std::string format_size(std::uint64_t bytes);

}  // namespace metaprof
