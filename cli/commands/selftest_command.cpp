// metaprof selftest: small programs for real, emulated and estimated.

#include <algorithm>
#include <memory>

#include "capture/selftest/selftest.h"
#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "core/error.h"
#include "core/formats/output_file.h"
#include "reports/checks/selftest_report.h"

namespace metaprof {
namespace {

constexpr const char* kSelftestDescription =
    "Do the figures hold on this machine? Runs small PyTorch programs and compares them phase by phase.\n"
    "\n"
    "  metaprof selftest --gpu --json selftest.json      for real, emulated and estimated\n"
    "  metaprof selftest                                 without a GPU: emulated and estimated\n"
    "  metaprof selftest --gpu --python venv/bin/python --program lstm --keep files\n"
    "\n"
    "With --gpu each program runs on the first device that PyTorch sees, and on an emulated device with "
    "that\n"
    "device's name and memory. The JSON has every figure, the versions and the date: attach it to an issue.\n"
    "\n"
    "Exit status: 0 all are equal, 1 something differs or a program failed, 2 bad usage or no GPU.\n";

struct SelftestWords {
  SelftestOptions options;
  std::string json;
};

int selftest(const Command& command, const SelftestWords& words) {
  const SelftestOptions& options = words.options;
  if (options.gpu && command.was_given("--device"))
    fail("--device has no effect with --gpu, which takes the machine's own device");
  if (!words.json.empty() && words.json != "-") check_can_be_written(words.json);
  const SelftestReport report = [&] {
    ProgressLine line("selftest:");
    return metaprof::selftest(options, [&](size_t done, size_t all) { line.tell(done, all); });
  }();
  if (!words.json.empty()) write_result(words.json, selftest_json(report, METAPROF_VERSION));
  if (words.json != "-") print_text(selftest_text(report));
  return std::ranges::all_of(report.programs, &SelftestProgram::equal) ? kFine : kFinding;
}

}  // namespace

void add_selftest_command(CommandLine& line) {
  Command command = line.add("selftest", kSelftestDescription);
  auto words = std::make_shared<SelftestWords>();
  SelftestOptions& options = words->options;
  command.flag("--gpu", options.gpu, "run the programs on this machine's GPU, too");
  command.option("--python", options.python, "an interpreter that has PyTorch").value("PATH").with_default();
  command.option("--device", options.device, "the emulated device, without --gpu")
      .value("NAME|FILE.json")
      .with_default();
  command.option("--program", options.programs, "only this one").value("NAME").one_value();
  command.option("--jobs", options.jobs, "programs side by side [half of the processors, at most 8]")
      .value("N")
      .from_to(1, 64);
  command.option("--timeout", options.timeout, "seconds after which a program is ended")
      .value("SECONDS")
      .above(0)
      .with_default();
  command.option("--keep", options.keep, "keep reports, logs and saved programs in this folder").value("DIR");
  add_json(command, words->json);
  command.on_run([command, words] { return selftest(command, *words); });
}

}  // namespace metaprof
