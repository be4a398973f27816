#include "core/heap.h"

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#endif

#include <cstdint>
#include <cstdlib>

namespace metaprof {

// Memory that was given back would be taken again, cleared page by page: a tenth of a run. And the first 64 MiB are
// asked for in large pages: each page of 4 KiB that is touched for the first time costs microseconds, a tenth of a run
// more. A system without large pages ignores the wish; what is not used is not taken.
void prepare_heap() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  constexpr uintptr_t kHeap = 64 << 20, kPage = 4096;
  void* const heap = std::malloc(kHeap);
  if (!heap) return;
  const uintptr_t first_page = (reinterpret_cast<uintptr_t>(heap) + kPage - 1) / kPage * kPage;
  madvise(reinterpret_cast<void*>(first_page), kHeap - kPage, MADV_HUGEPAGE);
  std::free(heap);
#endif
}

}  // namespace metaprof
