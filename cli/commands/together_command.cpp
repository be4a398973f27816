// metaprof together: several processes on one card.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "core/error.h"
#include "estimate/compare/together.h"
#include "reports/checks/together_report.h"

namespace metaprof {
namespace {

constexpr const char* kTogetherDescription =
    "Several processes on one card: whether they fit beside each other, and how to limit each.\n"
    "\n"
    "  metaprof profile gpt2 --device l40s --json a.json; metaprof run --device l40s --json b.json -- python "
    "train.py\n"
    "  metaprof together a.json b.json\n"
    "  metaprof together a.json a.json a.json --device h100\n"
    "  metaprof together a.json b.json --json - | jq '.rows[] | {report, request_bytes}'\n"
    "\n"
    "A file that is named twice is two processes.\n"
    "\n"
    "Exit status: 0 they fit, 1 they do not fit, 2 bad usage or input.\n";

struct TogetherWords {
  std::vector<std::string> reports;
  std::string json;
  RunOptions run;
  int64_t width = 0;
};

int together(const TogetherWords& words) {
  const TogetherReport report = metaprof::together(words.reports, words.run);
  if (!words.json.empty()) write_result(words.json, together_json(report));
  if (words.json != "-") print_text(together_text(report, static_cast<size_t>(words.width)));
  return report.fits() || report.fits_with_limits() ? kFine : kFinding;
}

}  // namespace

void add_together_command(CommandLine& line) {
  Command command = line.add("together", kTogetherDescription);
  auto words = std::make_shared<TogetherWords>();
  command.option("REPORT", words->reports, "JSON of metaprof profile or metaprof run, one for each process")
      .value(" ...")
      .required();
  const auto add = [&](const char* option, const char* argument, const std::string& help) {
    command
        .option(
            std::string("--") + option,
            [words, option](const std::string& text) { set_from_text(words->run, run_option(option), text); },
            help)
        .value(argument);
  };
  add("device", "NAME", "the card [that of the first report]");
  add("memory", "SIZE", "its memory, as 20GiB: of a slice (MIG)");
  add("context", "SIZE", "memory of each process outside its allocator [as the reports say]");
  add("margin", "SHARE", "share of the memory to leave free, as 5%");
  add_json(command, words->json);
  add_width(command, words->width);
  command.on_run([words] { return together(*words); });
}

}  // namespace metaprof
