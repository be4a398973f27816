#include "estimate/plan/plan_report.h"

#include "estimate/prepare/rates.h"

namespace metaprof {

PlanReport plan_report(const Estimate& estimate) {
  const ProfileReport& report = estimate.report;
  PlanReport plan;
  plan.model = report.model;
  plan.device = report.device;
  const auto root = report.module_types.find("");
  plan.root_type = root == report.module_types.end() || root->second.empty()
                       ? "model"
                       : root->second.substr(root->second.rfind('.') + 1);
  plan.input = plan_input(estimate.trace, estimate.platform.device(), rates_of(estimate.platform));
  return plan;
}

}  // namespace metaprof
