#include "reports/sections/execution_json.h"

namespace metaprof {
namespace {

nlohmann::ordered_json figures_json(const ExecutionFigures& figures) {
  return {{"peak_bytes", figures.peak.count},
          {"saved_bytes", figures.saved.count},
          {"flops", figures.flops.count},
          {"kernels", figures.kernels}};
}

}  // namespace

nlohmann::ordered_json comparison_json(const ExecutionComparison& comparison) {
  return {{"eager", figures_json(comparison.eager)}, {"graph", figures_json(comparison.graph)}};
}

nlohmann::ordered_json comparison_json(const BranchComparison& comparison) {
  return {{"true", figures_json(comparison.when_true)},
          {"false", figures_json(comparison.when_false)},
          {"shown", comparison.shown}};
}

}  // namespace metaprof
nlohmann::ordered_json comparison_json(const LoopComparison& comparison) {
  return {{"one_trip", figures_json(comparison.one_trip)}, {"two_trips", figures_json(comparison.two_trips)}};
}

