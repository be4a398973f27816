#include "estimate/run_costs.h"

#include <fmt/format.h>

#include "core/error.h"
#include "estimate/estimate.h"
#include "estimate/prepare/captured_run.h"

namespace metaprof {

RunCosts costs_of_run(const std::vector<std::pair<int, Program>>& captured) {
  RunCosts costs;
  for (const auto& [rank, program] : captured) try {
      Model model;
      model.program = program;
      model.name = program.name;
      costs.by_rank[rank] = estimate(model, as_captured({}, program)).report.counts;
    } catch (const Error& error) {
      costs.unknown = fmt::format("FLOPs and time of rank {} are not known: {}", rank, error.what());
    }
  return costs;
}

}  // namespace metaprof
