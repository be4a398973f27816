#include <nlohmann/json.hpp>

#include "reports/device/replay_report.h"
#include "reports/tables/json_text.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

Json seconds_json(const std::optional<double>& seconds) { return seconds ? Json(*seconds) : Json(); }

Json numbers_json(const AllocatorNumbers& n) {
  const auto number = [](const AllocatorNumber& value) {
    return Json{{"current", value.current}, {"peak", value.peak}};
  };
  return {{"allocated_bytes", number(n.allocated_bytes)},
          {"requested_bytes", number(n.requested_bytes)},
          {"active_bytes", number(n.active_bytes)},
          {"reserved_bytes", number(n.reserved_bytes)},
          {"inactive_split_bytes", number(n.inactive_split_bytes)},
          {"blocks", number(n.allocation)},
          {"segments", number(n.segment)}};
}

Json failure_json(const std::optional<OutOfMemory>& failed) {
  if (!failed) return nullptr;
  return {{"part", to_string(failed->part)},
          {"requested_bytes", failed->requested.count},
          {"allocated_bytes", failed->allocated.count},
          {"reserved_bytes", failed->reserved.count}};
}

Json row_json(const Phases& phases, size_t i) {
  return i < phases.rows.size() ? numbers_json(phases.rows[i].numbers) : Json();
}

Json parts_json(const ReplayComparison& c) {
  Json parts = Json::array();
  const std::vector<PhaseRow>& longer =
      c.real.phases.rows.size() < c.estimated.rows.size() ? c.estimated.rows : c.real.phases.rows;
  for (size_t i = 0; i < longer.size(); ++i) {
    Json part = {{"part", to_string(longer[i].part)},
                 {"estimated", row_json(c.estimated, i)},
                 {"real", row_json(c.real.phases, i)}};
    if (i < c.real.parts.size()) {
      part["device_used_bytes"] = c.real.parts[i].most_used.count;
      part["expected_seconds"] = c.real.parts[i].expected;
      part["seconds"] = seconds_json(c.real.parts[i].seconds);
    }
    parts.push_back(part);
  }
  return parts;
}

Json calls_json(const ReplayedCalls& calls) {
  return {{"calls", calls.calls},
          {"flops", calls.flops.count},
          {"moved_bytes", calls.moved.count},
          {"expected_seconds", calls.expected},
          {"seconds", seconds_json(calls.seconds)}};
}

Json kinds_json(const DeviceReplay& real) {
  Json kinds = Json::array();
  for (size_t i = 0; i < kReplayedAs; ++i) {
    const auto as = static_cast<ReplayedAs>(i);
    Json kind = {{"executed_as", to_string(as)}, {"real", is_real(as)}};
    kind.update(calls_json(real.by_kind[i]));
    kinds.push_back(kind);
  }
  return kinds;
}

Json operators_json(const DeviceReplay& real) {
  Json operators = Json::array();
  for (const ReplayedOp& op : real.by_op) {
    Json row = {{"operator", op.op}, {"executed_as", to_string(op.as)}, {"real", is_real(op.as)}};
    row.update(calls_json(op.total));
    operators.push_back(row);
  }
  return operators;
}

}  // namespace

std::string replay_json(const ReplayComparison& c) {
  const DeviceReplay& real = c.real;
  const Json report = {
      {"schema", "metaprof.replay"},
      {"schema_version", 1},
      {"model", c.model},
      {"allocator", c.allocator},
      {"device",
       {{"title", real.title},
        {"ordinal", real.ordinal},
        {"memory_bytes", real.memory.count},
        {"driver_cuda", real.driver},
        {"cublas", real.cublas},
        {"cudnn", real.cudnn},
        {"used_before_bytes", real.used_before.count},
        {"used_outside_at_end_bytes", real.used_after.count},
        {"used_at_most_bytes", real.most_used.count}}},
      {"parts", parts_json(c)},
      {"peak", {{"estimated", numbers_json(c.estimated.peak)}, {"real", numbers_json(real.phases.peak)}}},
      {"out_of_memory",
       {{"estimated", failure_json(c.estimated.out_of_memory)},
        {"real", failure_json(real.phases.out_of_memory)}}},
      {"segments",
       {{"allocated", real.segments.allocations},
        {"freed", real.segments.frees},
        {"pages_mapped", real.segments.mapped},
        {"pages_unmapped", real.segments.unmapped},
        {"refused", real.segments.refused}}},
      {"waited", real.waited},
      {"differences", c.differences},
      {"differences_at_addresses", c.differences_at_addresses},
      {"last_step_by_kind", kinds_json(real)},
      {"last_step_by_operator", operators_json(real)}};
  return json_text(report);
}

}  // namespace metaprof
