// metaprof devices: what --device knows.

#include <algorithm>
#include <functional>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "meta/platform/hardware.h"
#include "reports/catalog/devices_report.h"

namespace metaprof {
namespace {

constexpr const char* kDevicesDescription =
    "The known devices (--device).\n"
    "\n"
    "  metaprof devices\n"
    "  metaprof devices --json - | jq '.devices[] | {name, memory_bytes}'\n"
    "\n"
    "Describe your own device in a file, --device FILE.json: {\"like\": \"h100\", \"memory\": 42949672960}.\n"
    "\n"
    "Exit status: 0 success, 2 bad usage.\n";

std::vector<DeviceRow> rows() {
  std::vector<DeviceRow> rows;
  for (const Hardware& profile : known_hardware())
    rows.push_back({.name = profile.name,
                    .title = profile.title,
                    .sm = profile.sm,
                    .multiprocessors = profile.multiprocessors,
                    .memory = profile.memory,
                    .bandwidth = profile.bandwidth,
                    .flops_f32 = profile.flops_f32,
                    .flops_f16 = profile.flops_f16});
  std::ranges::stable_sort(rows, std::greater<>(), [](const DeviceRow& row) {
    return std::pair(row.multiprocessors > 0, row.memory.count);
  });
  return rows;
}

}  // namespace

void add_devices_command(CommandLine& line) {
  Command command = line.add("devices", kDevicesDescription);
  auto json = std::make_shared<std::string>();
  add_json(command, *json);
  auto width = std::make_shared<int64_t>();
  add_width(command, *width);
  command.on_run([json, width] {
    if (!json->empty()) write_result(*json, devices_json(rows()));
    if (*json != "-") print_text(devices_text(rows(), static_cast<size_t>(*width)));
    return int{kFine};
  });
}

}  // namespace metaprof
