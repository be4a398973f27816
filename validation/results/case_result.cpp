#include "validation/results/case_result.h"

#include <algorithm>

namespace metaprof {

std::string_view to_string(CaseDifference::What what) {
  static constexpr std::string_view kNames[kWhats] = {"outputs", "saved", "forward_events", "backward_events",
                                                      "grads"};
  return kNames[static_cast<int>(what)];
}

bool CaseResult::equal(CaseDifference::What what) const {
  const bool of_backward =
      what == CaseDifference::What::backward_events || what == CaseDifference::What::grads;
  if (!forward_error.empty() || (of_backward && !backward_error.empty())) return false;
  return std::none_of(differences.begin(), differences.end(),
                      [&](const CaseDifference& d) { return d.what == what; });
}

void CaseCounts::add(const CaseResult& result) {
  if (result.cut_short) {
    ++cut_short;
    cut_equal += result.all_equal();
    return;
  }
  ++total;
  if (!result.claimed()) return;
  ++claimed;
  for (int what = 0; what < kWhats; ++what)
    equal[size_t(what)] += result.equal(static_cast<CaseDifference::What>(what));
}

bool CaseCounts::all_equal() const {
  return cut_short == cut_equal &&
         std::ranges::all_of(equal, [this](int64_t count) { return count == claimed; });
}

void CaseSummary::add(CaseResult result) {
  totals.add(result);
  by_op[result.op].add(result);
  for (const std::string& name : result.missing) {
    ++blocked_by[name];
    if (result.missing.size() == 1) ++only_blocked_by[name];
  }
  if (!result.all_equal()) differing.push_back(std::move(result));
}

}  // namespace metaprof
