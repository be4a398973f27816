#include <sys/mman.h>

#include "capture/emulator/machine/memory/memory.h"

namespace metaprof::emulator {

void* allocate_host(size_t bytes, Kind kind, int device) {
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  add_host_range(uintptr_t(pages), bytes, kind, device);
  return pages;
}

bool free_host(void* address, Kind kind, const char* function) {
  const std::optional<Range> range = find_range(address);
  if (!range || range->base != uintptr_t(address) || !release(range->base, kind, function)) return false;
  munmap(address, range->bytes);
  return true;
}

}  // namespace metaprof::emulator
