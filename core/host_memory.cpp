#include "core/host_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

// Of mimalloc, where the program has it (core/heap).
extern "C" [[gnu::weak]] void mi_collect(bool force);

namespace metaprof {
namespace {

bool limited = false;
rlimit at_start{}, ours{};  // where `limited`
int64_t budget = 0;

// A number in a file of cgroups; nothing: there is no such file, or it says "max".
std::optional<int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

// Of the cgroup of this process and those around it: version 2 ("0::/a/b"), else version 1 ("9:memory:/a/b"). In a
// container its own may be the root of what can be seen.
int64_t memory_of_cgroups() {
  int64_t least = std::numeric_limits<int64_t>::max();
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string kind = line.substr(first + 1, second - first - 1);
    if (!kind.empty() && kind != "memory") continue;
    const std::string root = kind.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* name = kind.empty() ? "/memory.max" : "/memory.limit_in_bytes";
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      if (const auto most = number_in(root + (path == "/" ? "" : path) + name))
        least = std::min(least, *most);
      if (path.find('/') == path.npos) break;
    }
  }
  return least;
}

int64_t mapped_now() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  return file >> pages ? pages * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

void give_back_freed_memory() {
  if (mi_collect != nullptr) mi_collect(true);
}

int64_t machine_memory() {
  return std::min<int64_t>(int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE), memory_of_cgroups());
}

void limit_host_memory(int64_t bytes) {
  if (!limited && getrlimit(RLIMIT_AS, &at_start) != 0) return;
  budget = bytes;
  ours = at_start;
  const auto most =
      static_cast<rlim_t>(std::min(bytes, std::numeric_limits<int64_t>::max() / 2) + mapped_now());
  if (at_start.rlim_cur == RLIM_INFINITY || most < at_start.rlim_cur) ours.rlim_cur = most;
  limited = setrlimit(RLIMIT_AS, &ours) == 0;
}

void lift_host_memory_limit() {
  if (limited) setrlimit(RLIMIT_AS, &at_start);
}

WithoutHostMemoryLimit::~WithoutHostMemoryLimit() {
  if (limited) setrlimit(RLIMIT_AS, &ours);
}

void tell_out_of_memory() {
  char line[200];
  constexpr double kMiB = 1 << 20;
  rlimit now{};
  getrlimit(RLIMIT_AS, &now);
  int length = 0;
  if (limited && ours.rlim_cur != at_start.rlim_cur)
    length = std::snprintf(
        line, sizeof line,
        "metaprof: out of memory: this program may take %.0f MiB of this machine's; --host-memory "
        "SIZE allows more\n",
        static_cast<double>(budget) / kMiB);
  else if (now.rlim_cur != RLIM_INFINITY)
    length = std::snprintf(line, sizeof line,
                           "metaprof: out of memory: `ulimit -v` allows this program %.0f MiB\n",
                           static_cast<double>(now.rlim_cur) / kMiB);
  else
    length = std::snprintf(line, sizeof line, "metaprof: out of memory: this machine has no more\n");
  (void)!write(STDERR_FILENO, line, static_cast<size_t>(std::max(length, 0)));
}

}  // namespace metaprof
