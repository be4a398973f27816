#pragma once
// Memory of the machine that this program runs on, and how much of it the program takes.
//
// The kernel counts (RLIMIT_AS): it costs the way to an object nothing, sees libraries' memory too, and what is beyond
// the limit fails like any allocation for which there is no memory. A limit that was set from outside (`ulimit -v`)
// holds as well. Other programs that this one starts get the limit that it was started with.

#include <atomic>
#include <cstdint>

namespace metaprof {

/// Bytes of this machine, or of the part of it that its container may have (cgroups).
int64_t machine_memory();

/// Gives freed memory back to the system, where the heap can do so. It walks through the whole heap: call it after much was
/// freed.
void give_back_freed_memory();

/// What this process may take beyond what it has mapped now, in bytes.
void limit_host_memory(int64_t bytes);

/// The limit that this process was started with; for a child, before it becomes another program. Calls nothing that may
/// not be called between fork and exec.
void lift_host_memory_limit();

/// While it lives, processes that are started have no limit of ours.
class WithoutHostMemoryLimit {
 public:
  WithoutHostMemoryLimit() { lift_host_memory_limit(); }
  ~WithoutHostMemoryLimit();
  WithoutHostMemoryLimit(const WithoutHostMemoryLimit&) = delete;
  WithoutHostMemoryLimit& operator=(const WithoutHostMemoryLimit&) = delete;
};

/// An allocation has failed. Where there is no memory for an exception either, this is all that tells.
inline std::atomic<bool> memory_ran_out = false;

/// One line on stderr that says which limit was reached. Needs no memory.
void tell_out_of_memory();

}  // namespace metaprof
