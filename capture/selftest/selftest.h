#pragma once
// Small programs run for real and on the emulated device, and repeated by the engine: does this program's figure hold on this
// card, with this PyTorch?

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capture/selftest/machine.h"
#include "validation/results/check_result.h"

namespace metaprof {

struct SelftestOptions {
  bool gpu = false;                   ///< also for real, on this machine's first device
  std::string python = "python3";     ///< an interpreter that has PyTorch
  std::string device = "h200";        ///< that is emulated where nothing is run for real
  int jobs = 0;                       ///< programs side by side; 0: by the number of processors
  double timeout = 150;               ///< seconds for one program
  std::vector<std::string> programs;  ///< by name; empty: all
  std::string keep;                   ///< a folder for reports, logs and saved programs; empty: they go
};

struct SelftestProgram {
  std::string name, what;             ///< "conv_adamw", and the first line of its own description
  std::vector<std::string> problems;  ///< why figures are missing; empty: none are
  CheckResult emulated;               ///< the emulated run beside the engine's repetition of it
  std::optional<CheckResult> real;    ///< the real run beside the same
  std::optional<EventMismatch>
      real_difference;  ///< the first request in which real (recorded) and emulated run differ
  /// The real run's requests, given to the model of the allocator with the addresses of the driver's segments, lead to its
  /// statistics: what differs from the emulated run although the requests are the same, these addresses decide.
  bool driver_decides = false;

  /// All that was compared is there and equal.
  bool equal() const;
};

struct SelftestReport {
  Machine machine;
  std::string device_title;  ///< "NVIDIA H200"
  int64_t device_memory = 0;
  bool gpu = false;
  std::string date;  ///< "2026-11-26T05:10:00Z"
  double seconds = 0;
  std::vector<SelftestProgram> programs;
};

/// `progress`: how many of how many runs have ended. Errors: as machine_of; `gpu` on a machine without one; there is no
/// program of a name.
SelftestReport selftest(const SelftestOptions& options, const std::function<void(size_t, size_t)>& progress);

/// The programs that there are, sorted.
std::vector<std::string> selftest_programs();

}  // namespace metaprof
