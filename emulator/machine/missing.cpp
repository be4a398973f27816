#include "emulator/machine/missing.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "emulator/machine/counters.h"
#include "emulator/machine/log.h"

void metaprof_emulator_missing(const char* library, const char* function) {
  using namespace metaprof::emulator;
  count(Counter::missing);
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (!said.insert(function).second) return;
  std::fprintf(stderr, "metaprof emulator: %s has no %s; the call fails\n", library, function);
  log_missing(library, function);
}
