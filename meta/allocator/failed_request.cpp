#include "meta/allocator/failed_request.h"

#include <fmt/format.h>

#include "meta/allocator/alloc_conf.h"

namespace metaprof {

std::string format_size(std::uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes <= kKiB) return fmt::format("{} bytes", bytes);
  if (bytes <= kMiB) return fmt::format("{:.2f} KiB", size / static_cast<double>(kKiB));
  if (bytes <= kKiB * kMiB) return fmt::format("{:.2f} MiB", size / static_cast<double>(kMiB));
  return fmt::format("{:.2f} GiB", size / static_cast<double>(kKiB * kMiB));
}

std::string FailedRequest::message() const {
  if (above_limit) return "CUDA out of memory. Tried to allocate more than 1EB memory.";
  std::string text = fmt::format(
      "CUDA out of memory. Tried to allocate {}. GPU {} has a total capacity of {} of which {} is free. ",
      format_size(segment), device_index, format_size(capacity), format_size(unused));
  if (allowed) text += fmt::format("{} allowed; ", format_size(*allowed));
  text += fmt::format("Of the allocated memory {} is allocated by PyTorch, ",
                      format_size(allocated + cached_in_private_pools));
  if (cached_in_private_pools > 0) {
    text += fmt::format("with {} allocated in private pools (e.g., CUDA Graphs), ",
                        format_size(cached_in_private_pools));
  }
  text += fmt::format("and {} is reserved by PyTorch but unallocated.",
                      format_size(reserved - allocated - cached_in_private_pools));
  text +=
      " If reserved but unallocated memory is large try setting "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
      " to avoid fragmentation.  See documentation for Memory Management "
      " (https://docs.pytorch.org/docs/stable/notes/"
      "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
  return text;
}

}  // namespace metaprof
