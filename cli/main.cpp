#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "cli/commands/commands.h"
#include "cli/metaprof.h"
#include "core/host_memory.h"

namespace {

bool ends_of_memory() {
  if (!std::current_exception()) return metaprof::memory_ran_out;  // an exception needs memory, too
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Memory may run out where no exception can pass: before main, in a function that is noexcept.
[[noreturn]] void end() {
  if (!ends_of_memory()) std::abort();
  metaprof::tell_out_of_memory();
  _exit(metaprof::kBadInput);
}

// Before the constructors of this program.
void watch_memory() { std::set_terminate(end); }
[[gnu::used, gnu::section(".preinit_array")]] void (*const kWatchMemory)() = watch_memory;

}  // namespace

// The process ends without the destructors of what lives as long as it does, as its memory goes with it; those take as
// long as a fiftieth of a report. Sanitizers look for leaks at the end of main.
int main(int count, char** words) {
  const int status = metaprof::run_metaprof(count, words);
#ifndef __SANITIZE_ADDRESS__
  std::fflush(nullptr);
  std::_Exit(status);
#endif
  return status;
}
