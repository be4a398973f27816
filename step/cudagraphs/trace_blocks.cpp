#include "step/cudagraphs/trace_blocks.h"

namespace metaprof {

bool TraceBlocks::feed(size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (feed(trace_.events[i])) continue;
    failed_ = i;
    return false;
  }
  return true;
}

bool TraceBlocks::feed(const Event& event) {
  if (event.kind == Event::Kind::alloc) {
    const Bytes bytes = trace_.bytes(event.id);
    if (trace_.storages[event.id].device != device_ || bytes.count == 0) return true;
    const auto block = allocator_.allocate(bytes.count, event.stream);
    if (block) blocks_[event.id] = *block;
    return block.has_value();
  }
  if (event.kind != Event::Kind::free && event.kind != Event::Kind::record_stream) return true;
  const auto found = blocks_.find(event.id);
  if (found == blocks_.end()) return true;
  if (event.kind == Event::Kind::record_stream) {
    allocator_.record_stream(found->second, event.stream);
  } else {
    allocator_.free(found->second);
    blocks_.erase(found);
  }
  return true;
}

}  // namespace metaprof
