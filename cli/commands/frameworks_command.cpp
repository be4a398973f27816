// metaprof frameworks: what --framework knows.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "meta/platform/framework.h"
#include "meta/platform/libraries.h"
#include "reports/catalog/frameworks_report.h"

namespace metaprof {
namespace {

constexpr const char* kFrameworksDescription =
    "The known versions of PyTorch (--framework), and how many recordings each version equals.\n"
    "\n"
    "  metaprof frameworks\n"
    "  metaprof frameworks --json - | jq '.frameworks[] | {version, steps, steps_equal}'\n"
    "\n"
    "A step is equal if allocated and requested bytes are equal at the end and at the peak of each phase.\n"
    "Another patch release (2.9.0) has the rules of the one that was compared.\n"
    "A version newer than all has the rules of the newest, with a warning.\n"
    "\n"
    "Exit status: 0 success, 2 bad usage.\n";

std::vector<FrameworkRow> framework_rows() {
  std::vector<FrameworkRow> rows;
  for (const ComparedVersion& compared : compared_versions()) {
    const Libraries libraries = libraries_shipped_with(parse_framework_version(compared.version));
    rows.push_back({.compared = compared, .cuda = libraries.cuda, .cudnn = libraries.cudnn});
  }
  return rows;
}

}  // namespace

void add_frameworks_command(CommandLine& line) {
  Command command = line.add("frameworks", kFrameworksDescription);
  auto json = std::make_shared<std::string>();
  add_json(command, *json);
  command.on_run([json] {
    if (!json->empty()) write_result(*json, frameworks_json(framework_rows()));
    if (*json != "-") print_text(frameworks_text(framework_rows()));
    return int{kFine};
  });
}

}  // namespace metaprof
