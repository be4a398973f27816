#include "estimate/results/profile.h"

namespace metaprof {

Verdict verdict_of(const ProfileReport& report) {
  const Verdict device{.device = report.device,
                       .outside = report.outside,
                       .margin = report.margin,
                       .memory = report.device_memory};
  if (report.epoch) {
    Verdict verdict = device;
    verdict.reserved = report.epoch->needed();
    verdict.fits = !report.epoch->run.ended && verdict.left().count >= 0;
    verdict.at_least = report.epoch->without_limit && report.epoch->without_limit->ended;
    return verdict;
  }
  return judge(device, report.memory.phases, report.needed_memory);
}

}  // namespace metaprof
