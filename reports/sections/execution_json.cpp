#include "reports/sections/execution_json.h"

namespace metaprof {
namespace {

nlohmann::ordered_json figures_json(const ExecutionFigures& figures) {
  return {{"peak_bytes", figures.peak.count},
          {"saved_bytes", figures.saved.count},
          {"flops", figures.flops.count},
          {"kernels", figures.kernels}};
}

nlohmann::ordered_json scope_json(const GraphScope& scope) {
  return {{"device", scope.device},
          {"fuses", !scope.on_host},
          {"compiled", scope.optimised},
          {"passes", scope.passes},
          {"passes_left_out", scope.left_out},
          {"plans", scope.plans},
          {"plans_of_gradients", scope.of_gradients},
          {"fused_kernels", scope.kernels},
          {"fused_operators", scope.fused},
          {"batches_of_products", scope.batches},
          {"differentiated_eagerly", scope.outside},
          {"branches_followed", scope.followed}};
}

}  // namespace

nlohmann::ordered_json comparison_json(const ExecutionComparison& comparison) {
  return {{"eager", figures_json(comparison.eager)},
          {"graph", figures_json(comparison.graph)},
          {"scope", scope_json(comparison.scope)}};
}

nlohmann::ordered_json comparison_json(const BranchComparison& comparison) {
  return {{"true", figures_json(comparison.when_true)},
          {"false", figures_json(comparison.when_false)},
          {"shown", comparison.shown}};
}

nlohmann::ordered_json comparison_json(const LoopComparison& comparison) {
  return {{"one_trip", figures_json(comparison.one_trip)}, {"two_trips", figures_json(comparison.two_trips)}};
}

}  // namespace metaprof
