#pragma once
// The storages of a trace as blocks of a caching allocator: events go in one by one, and between them the owner
// may begin and end pools.

#include <optional>
#include <unordered_map>

#include "meta/allocator/caching_allocator.h"
#include "meta/trace/trace.h"

namespace metaprof {

class TraceBlocks {
 public:
  /// Of the storages on `device`. Trace and allocator outlive it.
  TraceBlocks(const Trace& trace, Device device, CachingAllocator& allocator)
      : trace_(trace), device_(device), allocator_(allocator) {}

  /// Events begin … end - 1. False: memory ran out, at event `failed()`.
  bool feed(size_t begin, size_t end);
  size_t failed() const { return failed_; }

 private:
  bool feed(const Event& event);

  const Trace& trace_;
  const Device device_;
  CachingAllocator& allocator_;
  size_t failed_ = 0;
  std::unordered_map<uint32_t, BlockNumber> blocks_;  // by storage
};

}  // namespace metaprof
