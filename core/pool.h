#pragma once
// Fixed-size memory for objects that come and go by the thousand (tensors, storages, nodes): a free list per
// thread and size. It has a limited length, so that a graph of a million nodes gives its memory back. A class opts in by
// deriving from Pooled. Under the address sanitizer they come from the heap, so that it sees uses after free and leaks.

#include <cstddef>
#include <new>
#include <utility>

namespace metaprof {

#ifdef METAPROF_ADDRESS_SANITIZER  // tools/cmake/MetaprofToolchain.cmake
inline constexpr bool kPools = false;
#else
inline constexpr bool kPools = true;
#endif

template <size_t size>
class Pool {
 public:
  static void* take() {
    List& free = list();
    if (!free.head) return ::operator new(size);
    --free.length;
    return std::exchange(free.head, free.head->next);
  }
  static void give(void* memory) {
    List& free = list();
    if (free.length == kLongest) return ::operator delete(memory);
    ++free.length;
    free.head = new (memory) Block{free.head};
  }

 private:
  static_assert(size >= sizeof(void*));
  static constexpr size_t kLongest = 1 << 14;
  struct Block {
    Block* next;
  };
  struct List {
    Block* head = nullptr;
    size_t length = 0;
    ~List() {
      while (head) ::operator delete(std::exchange(head, head->next));
    }
  };
  static List& list() {
    static thread_local List list;
    return list;
  }
};

/// Base of classes that take their memory from a Pool. Objects of derived classes of another size come from
/// the heap.
template <class T>
struct Pooled {
  static void* operator new(size_t size) {
    return kPools && size == sizeof(T) ? Pool<sizeof(T)>::take() : ::operator new(size);
  }
  static void operator delete(void* memory, size_t size) {
    if (kPools && size == sizeof(T)) {
      Pool<sizeof(T)>::give(memory);
    } else {
      ::operator delete(memory);
    }
  }
};

}  // namespace metaprof
