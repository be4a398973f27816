#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/compiled/cudagraphs_report.h"
#include "reports/sections/option_json.h"
#include "reports/tables/json_text.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

Json statistics_json(const MemoryStatistics& statistics) {
  Json pools = Json::object();
  for (const auto& [pool, bytes] : statistics.segments_by_pool)
    pools[fmt::format("({}, {})", pool.first, pool.second)] = bytes;
  return {{"allocated", statistics.allocated.current},
          {"allocated_peak", statistics.allocated.peak},
          {"reserved", statistics.reserved.current},
          {"reserved_peak", statistics.reserved.peak},
          {"segments_by_pool", pools}};
}

Json failure_json(const std::optional<FailedCapture>& failed) {
  if (!failed) return nullptr;
  return {{"place", failed->place}, {"requested", failed->requested.count}};
}

Json graphed_callables_json(const GraphedCallablesMemory& memory) {
  return {{"setup", statistics_json(memory.setup)},
          {"captured", statistics_json(memory.captured)},
          {"replayed", statistics_json(memory.replayed)},
          {"out_of_memory", failure_json(memory.out_of_memory)}};
}

Json whole_network_json(const WholeNetworkMemory& memory) {
  return {{"setup", statistics_json(memory.setup)},
          {"warm", statistics_json(memory.warm)},
          {"captured", statistics_json(memory.captured)},
          {"replayed", statistics_json(memory.replayed)},
          {"copied_bytes_per_step", memory.copied.count},
          {"launches_saved_per_step", memory.launches - 1},
          {"out_of_memory", failure_json(memory.out_of_memory)}};
}

Json verdict_json(const CaptureVerdict& verdict) {
  Json inputs = Json::array();
  for (const CaptureInput& input : verdict.inputs)
    inputs.push_back({{"name", input.name},
                      {"static", input.fixed},
                      {"copied_bytes", input.copied.count},
                      {"mutation", letter_of(input.mutation)}});
  Json place = nullptr;
  if (!verdict.place.op.empty())
    place = {{"op", verdict.place.op}, {"module", verdict.place.module}, {"line", verdict.place.line}};
  return {{"graph", verdict.graph},
          {"captured", verdict.captured()},
          {"reason", verdict.captured() ? Json(nullptr) : Json(to_string(verdict.reason))},
          {"message", verdict.message},
          {"place", place},
          {"first_call_by_device", verdict.first_nodes},
          {"unknown_operators", verdict.unknown},
          {"inputs", inputs}};
}

// Counters have the framework's names; it leaves out those that are 0.
Json tree_json(const StepTree& tree) {
  Json counters = Json::object();
  const int64_t skips = tree.skips + tree.counters.skips;
  if (skips > 0) counters["cudagraph_skips"] = skips;
  if (tree.counters.non_static_inputs > 0)
    counters["cudagraph_recorded_non_static_inputs"] = tree.counters.non_static_inputs;
  Json nodes = Json::array();
  for (const GraphTree::Node& node : tree.nodes)
    nodes.push_back({{"function", tree.functions[static_cast<size_t>(node.function)]},
                     {"parent", node.parent == kNoGraphNode ? Json(nullptr) : Json(node.parent)},
                     {"warm_up", node.warm_up},
                     {"copied_inputs", node.copied},
                     {"replays", node.replays}});
  const MemoryStatistics& memory = tree.memory;
  const bool known = tree.not_modelled.empty(), ends = !tree.overwritten.empty();
  const auto bytes = [&](int64_t count) { return known && !ends ? Json(count) : Json(nullptr); };
  return {{"allocated", bytes(memory.allocated.current)},
          {"peak", bytes(memory.allocated.peak)},
          {"reserved", bytes(memory.reserved.peak)},
          {"not_modelled", known ? Json(nullptr) : Json(tree.not_modelled)},
          {"out_of_memory", tree.out_of_memory ? Json(tree.out_of_memory->count) : Json(nullptr)},
          {"overwritten", ends ? Json(tree.overwritten) : Json(nullptr)},
          {"steps", tree.steps},
          {"counters", counters},
          {"nodes", nodes}};
}

}  // namespace

std::string cudagraphs_json(const CudagraphsReport& report) {
  Json options = Json::object();
  for (const auto& [name, value] : report.options) options[name] = option_json(value);
  Json memory = Json::object();
  if (report.whole_network) memory["whole_network"] = whole_network_json(*report.whole_network);
  if (report.graphed_callables)
    memory["graphed_callables"] = graphed_callables_json(*report.graphed_callables);
  if (report.tree) memory["tree"] = tree_json(*report.tree);
  Json graphs = Json::array();
  for (const CaptureVerdict& verdict : report.graphs) graphs.push_back(verdict_json(verdict));
  const Json json = {{"schema", "metaprof.cudagraphs"},
                     {"schema_version", 1},
                     {"model", report.model},
                     {"device", report.device},
                     {"options", options},
                     {"warmup", report.warmup},
                     {"graphs", graphs},
                     {"memory", memory},
                     {"notes", report.notes}};
  return json_text(json);
}

}  // namespace metaprof
