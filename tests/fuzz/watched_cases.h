#pragma once
// Runs cases within a process of their own, which goes on with the next ones until a case ends it: no process is started
// for each. A case is known by its number, so that nothing has to be written down before it runs.

#include <cstdint>
#include <functional>
#include <string>

namespace metaprof {

/// What a process found to be wrong in a case: a signal, a sanitizer's summary, a message, 10 s of processor time.
struct Finding {
  uint64_t number = 0;
  std::string what;    ///< "" is none
  std::string report;  ///< what was written to stderr
};

/// What became of a case. One may be refused with an Error, as any bad input is.
struct Outcome {
  bool refused = false;
  std::string complaint;  ///< what is wrong with that; empty: nothing
};

struct WatchedCases {
  /// Runs in the other process.
  std::function<Outcome(uint64_t number)> run;
  /// In this process.
  std::function<void(const Finding&)> found;
};

/// The cases from `begin` to `end`; how many of them were not refused.
uint64_t watch(uint64_t begin, uint64_t end, const WatchedCases& cases);

/// Bytes of memory that a case may take, at most: as the limit of a process.
inline constexpr uint64_t kMostMegabytes = 2048;

}  // namespace metaprof
