// metaprof allocator: the caching allocator against recordings of the framework's own.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "reports/checks/rerun_report.h"
#include "validation/allocator/rerun_allocations.h"

namespace metaprof {
namespace {

constexpr const char* kAllocatorDescription =
    "The caching allocator against recorded training steps.\n"
    "\n"
    "  metaprof allocator --replay gpt2.log.gz        every address, segment and statistic\n"
    "  metaprof allocator --replay recordings/*.log.gz --json replay.json\n"
    "\n"
    "X.json beside X.log.gz must have the options and the memory of the device.\n"
    "\n"
    "Exit status: 0 success, 1 recordings differ, 2 bad usage or input.\n";

struct AllocatorOptions {
  std::vector<std::string> logs;
  std::string json;
};

int replay(const AllocatorOptions& options) {
  const RerunResult result = rerun_allocations(options.logs);
  if (!options.json.empty()) write_result(options.json, rerun_json(result));
  if (options.json != "-") print_text(rerun_text(result));
  return result.all_equal() ? kFine : kFinding;
}

}  // namespace

void add_allocator_command(CommandLine& line) {
  Command command = line.add("allocator", kAllocatorDescription);
  auto options = std::make_shared<AllocatorOptions>();
  command.option("--replay", options->logs, "recordings to replay and compare").required().value("LOG.gz…");
  command.option("--json", options->json, "write JSON to FILE; -: to stdout, instead of the text")
      .value("FILE");
  command.on_run([options] { return replay(*options); });
}

}  // namespace metaprof
