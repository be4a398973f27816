#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/cudagraphs_report.h"
#include "reports/option_json.h"

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

Json whole_network_json(const WholeNetworkMemory& memory) {
  Json failed = nullptr;
  if (memory.out_of_memory)
    failed = {{"place", memory.out_of_memory->place}, {"requested", memory.out_of_memory->requested.count}};
  return {{"setup", statistics_json(memory.setup)},
          {"warm", statistics_json(memory.warm)},
          {"captured", statistics_json(memory.captured)},
          {"replayed", statistics_json(memory.replayed)},
          {"copied_bytes_per_step", memory.copied.count},
          {"launches_saved_per_step", memory.launches - 1},
          {"out_of_memory", failed}};
}

}  // namespace

std::string cudagraphs_json(const CudagraphsReport& report) {
  Json options = Json::object();
  for (const auto& [name, value] : report.options) options[name] = option_json(value);
  Json memory = Json::object();
  if (report.whole_network) memory["whole_network"] = whole_network_json(*report.whole_network);
  const Json json = {{"schema", "metaprof.cudagraphs"},
                     {"schema_version", 1},
                     {"model", report.model},
                     {"device", report.device},
                     {"options", options},
                     {"warmup", report.warmup},
                     {"memory", memory},
                     {"notes", report.notes}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace metaprof
