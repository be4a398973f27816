#include "reports/catalog/devices_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

// "9.0"
std::string capability(int sm) { return sm == 0 ? "" : fmt::format("{}.{}", sm / 10, sm % 10); }

}  // namespace

std::string devices_text(const std::vector<DeviceRow>& rows, size_t width) {
  TextTable table;
  table.column("device", TextTable::Align::left);
  table.column("title", TextTable::Align::left);
  for (const char* title : {"memory", "capability", "SMs", "GB/s", "fp32, TFLOP/s", "fp16, TFLOP/s"})
    table.optional_column(title);
  for (const DeviceRow& row : rows)
    table.row({row.name, row.title, human_bytes(row.memory.count), capability(row.sm),
               row.multiprocessors == 0 ? "" : std::to_string(row.multiprocessors),
               fmt::format("{:.0f}", row.bandwidth / 1e9), fmt::format("{:.1f}", row.flops_f32 / 1e12),
               fmt::format("{:.1f}", row.flops_f16 / 1e12)});
  return table.text(0, width);
}

std::string devices_json(const std::vector<DeviceRow>& rows) {
  using Json = nlohmann::ordered_json;
  Json devices = Json::array();
  for (const DeviceRow& row : rows)
    devices.push_back({{"name", row.name},
                       {"title", row.title},
                       {"capability", row.sm == 0 ? Json(nullptr) : Json(capability(row.sm))},
                       {"multiprocessors", row.multiprocessors},
                       {"memory_bytes", row.memory.count},
                       {"bytes_per_second", row.bandwidth},
                       {"flops_per_second_fp32", row.flops_f32},
                       {"flops_per_second_fp16", row.flops_f16}});
  const Json json = {{"schema", "metaprof.devices"}, {"schema_version", 1}, {"devices", devices}};
  return json_text(json);
}

}  // namespace metaprof
