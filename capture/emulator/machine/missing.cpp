#include "capture/emulator/machine/missing.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "capture/emulator/machine/counters.h"
#include "capture/emulator/machine/log.h"

namespace metaprof::emulator {

void say_missing(const char* library, const char* function, const char* sentence) {
  count(Counter::missing);
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (!said.insert(function).second) return;
  std::fprintf(stderr, "metaprof emulator: %s\n", sentence);
  log_missing(library, function);
}

}  // namespace metaprof::emulator

void metaprof_emulator_missing(const char* library, const char* function) {
  const std::string sentence = std::string(library) + " has no " + function + "; the call fails";
  metaprof::emulator::say_missing(library, function, sentence.c_str());
}
