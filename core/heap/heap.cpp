// The heap of a program: mimalloc, which the linker puts in place of the C library's. A run makes and drops tens of
// thousands of small objects, and with the C library's heap an eighth of it goes there.
//
// Its memory is asked for in large pages: a page of 4 KiB that is touched for the first time costs a microsecond, and a
// tenth of a run went there. A system without large pages ignores the wish; what is not used is not taken.
// mimalloc takes its first memory before any constructor of this program runs, so the wish is uttered in
// .preinit_array, which runs before those of libraries.

//
// mimalloc's own operator new, which is C, aborts where there is no memory. The ones below throw, as C++ says.

#include <mimalloc.h>

#include <cstddef>
#include <new>

#include "core/host_memory.h"

namespace {

void ask_for_large_pages() { mi_option_enable(mi_option_large_os_pages); }

[[gnu::used, gnu::section(".preinit_array")]] void (*const kAskForLargePages)() = ask_for_large_pages;

void* or_throw(void* memory) {
  if (memory == nullptr) [[unlikely]] {
    metaprof::memory_ran_out = true;
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(size_t size) { return or_throw(mi_malloc(size)); }
void* operator new[](size_t size) { return or_throw(mi_malloc(size)); }
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept { return mi_malloc(size); }
void* operator new[](size_t size, const std::nothrow_t& /*tag*/) noexcept { return mi_malloc(size); }
void* operator new(size_t size, std::align_val_t alignment) {
  return or_throw(mi_malloc_aligned(size, static_cast<size_t>(alignment)));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return or_throw(mi_malloc_aligned(size, static_cast<size_t>(alignment)));
}

void operator delete(void* memory) noexcept { mi_free(memory); }
void operator delete[](void* memory) noexcept { mi_free(memory); }
void operator delete(void* memory, size_t size) noexcept { mi_free_size(memory, size); }
void operator delete[](void* memory, size_t size) noexcept { mi_free_size(memory, size); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { mi_free(memory); }
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept { mi_free(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { mi_free(memory); }
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept { mi_free(memory); }
void operator delete(void* memory, size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  mi_free(memory);
}
void operator delete[](void* memory, size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  mi_free(memory);
}
