#include "estimate/results/profile.h"

namespace metaprof {

Verdict verdict_of(const ProfileReport& report) {
  const Verdict device{.device = report.device,
                       .outside = report.outside,
                       .margin = report.margin,
                       .memory = report.device_memory};
  return judge(device, report.memory.phases, report.needed_memory);
}

}  // namespace metaprof
