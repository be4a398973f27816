#include <fmt/format.h>

#include "reports/cudagraphs_report.h"
#include "reports/format.h"
#include "reports/text_table.h"

namespace metaprof {
namespace {

std::string whole_network_text(const CudagraphsReport& report) {
  const WholeNetworkMemory& memory = *report.whole_network;
  TextTable table;
  table.column("after", TextTable::Align::left);
  for (const char* title : {"allocated", "peak", "reserved", "in the graph's pool"}) table.column(title);
  const auto row = [&](const char* name, const MemoryStatistics& statistics) {
    int64_t in_pool = 0;
    for (const auto& [pool, bytes] : statistics.segments_by_pool) in_pool += pool.is_default() ? 0 : bytes;
    table.row({name, human_bytes(statistics.allocated.current), human_bytes(statistics.allocated.peak),
               human_bytes(statistics.reserved.current), human_bytes(in_pool)});
  };
  row("setup", memory.setup);
  row(report.warmup == 1 ? "1 step to warm up" : fmt::format("{} steps to warm up", report.warmup).c_str(),
      memory.warm);
  row("the capture", memory.captured);
  row("replays", memory.replayed);
  std::string text = "The whole step as one graph\n" + table.text();
  if (memory.out_of_memory)
    text += fmt::format("out of memory ({}): {} were asked for\n", memory.out_of_memory->place,
                        human_bytes(memory.out_of_memory->requested.count));
  text += fmt::format("a replay copies {} of inputs and launches one graph in place of {} operators\n",
                      human_bytes(memory.copied.count), memory.launches);
  return text;
}

}  // namespace

std::string cudagraphs_text(const CudagraphsReport& report) {
  std::string text = fmt::format("{} on {}\n\n", report.model, report.device);
  if (report.whole_network) text += whole_network_text(report);
  return text;
}

}  // namespace metaprof
