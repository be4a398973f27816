#include "evidence/reasons.h"

#include <fnmatch.h>

#include <algorithm>
#include <string>

namespace metaprof {
namespace {

constexpr KnownDifference kKnown[] = {
    {"shapes/engine/*/hook-*", "backward_events,grads",
     "a hook is a Python function: the recording shows what it does, not that it is there"},
    {"shapes/engine/*/leaf_hook-*", "backward_events,grads",
     "a hook is a Python function: the recording shows what it does, not that it is there"},
};

bool covers(const KnownDifference& known, CaseDifference::What what) {
  if (known.what == "*") return true;
  std::string_view rest = known.what;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (rest.substr(0, comma) == to_string(what)) return true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return false;
}

}  // namespace

std::span<const KnownDifference> known_differences() { return kKnown; }

const KnownDifference* reason_for(const CaseResult& result) {
  for (const KnownDifference& known : kKnown) {
    if (fnmatch(std::string(known.cases).c_str(), result.name.c_str(), 0) != 0) continue;
    bool all = true;
    for (int what = 0; what < kWhats; ++what) {
      const auto w = static_cast<CaseDifference::What>(what);
      all &= result.equal(w) || covers(known, w);
    }
    if (all) return &known;
  }
  return nullptr;
}

}  // namespace metaprof
