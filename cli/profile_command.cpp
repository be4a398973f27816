// metaprof profile: runs the steps of a model on a described device and reports what they cost.

#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/console.h"
#include "cli/estimate.h"
#include "cli/inputs.h"
#include "cli/metaprof.h"
#include "cli/profile_options.h"
#include "core/error.h"
#include "meta/trace/text.h"

namespace metaprof {
namespace {

constexpr const char* kDescription =
    "What training steps of a model cost.\n"
    "\n"
    "  metaprof profile model.pt2\n"
    "  metaprof profile model.pt2 --device a100 --precision amp-bf16 --optimizer adamw --steps 3\n"
    "  metaprof profile model.pt2 --memory 24GiB --depth 2 --sort saved\n"
    "  metaprof profile model.pt2 --json - | jq .peak\n"
    "  metaprof profile model.pt2 --html page.html --chrome-trace step.json --snapshot step.pickle\n"
    "  metaprof profile model.pt2 --per-node --top 20 --sort fwd_mem_out\n"
    "  metaprof profile model.pt2 --write-trace step.trace; metaprof profile step.trace\n"
    "\n"
    "MODEL is a .pt2 that torch.export.save wrote, or the text of a trace (*.trace).\n"
    "Exit status: 0 it fits, 1 it does not fit, 2 bad usage or input.\n";

int profile(const CLI::App& command, const ProfileOptions& options) {
  check_report_options(options.files, options.text);
  check_options(options);
  const DeviceProfile device = device_of(options);
  ProfileReport report;
  const Trace trace = trace_of(command, options, device, report);
  if (!options.write_trace.empty()) write_result(options.write_trace, to_text(trace));
  profile_trace(trace, options, device, report);

  TextOptions text = options.text;
  text.colour = colour_on_stdout();
  write_report_files({trace, device, options.alloc_conf}, options.files, text, report);
  if (!options.files.takes_stdout())
    std::cout << (options.files.markdown ? profile_markdown(report, text) : profile_text(report, text));
  return fits(report.memory.phases, device.memory) ? kFine : kFinding;
}

}  // namespace

void add_profile_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("profile", kDescription);
  auto options = std::make_shared<ProfileOptions>();
  add_profile_options(*command, *options);
  command->callback([command, options, &exit_code] { exit_code = profile(*command, *options); });
}

}  // namespace metaprof
