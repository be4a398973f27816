#include "core/plain_vector.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace metaprof {
namespace {

constexpr size_t kMapped = size_t{32} << 20;  // smaller ones are quicker where memory was used before

void* or_throw(void* memory) {
  if (memory == nullptr || memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

void* mapped(size_t size) {
  void* memory = or_throw(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  madvise(memory, size, MADV_HUGEPAGE);  // fewer first touches; a system without large pages ignores it
  return memory;
}

}  // namespace

void* resized_plain_memory(void* memory, size_t size, size_t new_size) {
  if (new_size < kMapped && size < kMapped) return or_throw(std::realloc(memory, new_size));
  if (memory != nullptr && size >= kMapped && new_size >= kMapped)
    return or_throw(mremap(memory, size, new_size, MREMAP_MAYMOVE));
  void* other = new_size < kMapped ? or_throw(std::malloc(new_size)) : mapped(new_size);
  if (memory != nullptr) std::memcpy(other, memory, std::min(size, new_size));
  free_plain_memory(memory, size);
  return other;
}

void free_plain_memory(void* memory, size_t size) {
  if (memory == nullptr) return;
  if (size < kMapped)
    std::free(memory);
  else
    munmap(memory, size);
}

}  // namespace metaprof
