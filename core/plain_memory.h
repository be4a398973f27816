#pragma once
// Memory of vectors of plain data (core/plain_vector.h).

#include <cstddef>

namespace metaprof {

/// Another block with the first `size` bytes of `memory`, which is gone then; null makes the first one. Of a large block
/// the system moves the pages instead of copying them, and pages that nothing was written to take no memory.
/// Errors: std::bad_alloc, and `memory` is as it was.
void* resized_plain_memory(void* memory, size_t size, size_t new_size);

void free_plain_memory(void* memory, size_t size);

}  // namespace metaprof
