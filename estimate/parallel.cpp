#include "estimate/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace metaprof {

void in_parallel(size_t count, const std::function<void(size_t)>& work, const OnProgress& progress) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex telling;
  size_t done = 0;
  const auto take = [&] {
    for (size_t i = next++; i < count && !failed; i = next++) {
      try {
        work(i);
        if (!progress) continue;
        const std::lock_guard lock(telling);
        progress(++done, count);
      } catch (...) {
        errors[i] = std::current_exception();
        failed = true;
      }
    }
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  threads.reserve(cores);
  try {
    for (size_t i = 1; i < std::min(cores, count); ++i) threads.emplace_back(take);
  } catch (const std::system_error&) {  // a limit on threads or memory: there are fewer then
  }
  take();
  threads.clear();  // waits
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace metaprof
