#include "estimate/results/verdict.h"

namespace metaprof {

Verdict judge(Verdict verdict, const Phases& phases, std::optional<Bytes> needed) {
  if (phases.out_of_memory) {
    verdict.at_least = !needed;
    verdict.reserved = needed.value_or(verdict.memory);
  } else {
    verdict.reserved = {phases.peak.reserved_bytes.peak};
    verdict.fits = verdict.left().count >= 0;
  }
  return verdict;
}

}  // namespace metaprof
