// metaprof measure: what this machine's GPU has and can do, as a file for --device.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "core/error.h"
#include "core/formats/output_file.h"

#ifdef METAPROF_CUDA
#include "backends/cuda/measure/measure.h"
#include "reports/device/measurement_report.h"
#endif

namespace metaprof {
namespace {

constexpr const char* kMeasureDescription =
    "What this machine's GPU has and how fast it is, as a file for --device.\n"
    "\n"
    "  metaprof measure\n"
    "  metaprof measure --quick --out card.json\n"
    "  metaprof profile model.pt2 --device card.json\n"
    "\n"
    "Memory that a process takes outside the allocator, granularities of the driver, copies, elementwise "
    "kernels,\n"
    "matrix products, launches: each with its spread. Other work on the GPU makes it slower; it takes memory "
    "of a\n"
    "few GiB and minutes, with --quick seconds.\n"
    "\n"
    "Exit status: 0 success, 2 bad usage, or no GPU.\n";

struct MeasureCommandOptions {
  int device = 0;
  bool quick = false;
  std::string out;
  int64_t width = 0;
};

#ifdef METAPROF_CUDA

int measure(const MeasureCommandOptions& options) {
  if (!options.out.empty() && options.out != "-") check_can_be_written(options.out);
  DeviceMeasurement measurement;
  {
    ProgressLine line("measuring");
    measurement = cuda::measure({.ordinal = options.device,
                                 .quick = options.quick,
                                 .progress = [&](size_t done, size_t all) { line.tell(done, all); }});
  }
  if (!options.out.empty()) write_result(options.out, device_file(measurement));
  if (options.out != "-") print_text(measurement_text(measurement, static_cast<size_t>(options.width)));
  return kFine;
}

#else

int measure(const MeasureCommandOptions&) {
  fail("this metaprof was built without CUDA: run tools/setup cuda, configure and build it again");
}

#endif

}  // namespace

void add_measure_command(CommandLine& line) {
  Command command = line.add("measure", kMeasureDescription);
  auto options = std::make_shared<MeasureCommandOptions>();
  command.option("--device", options->device, "number of the GPU, as CUDA counts them")
      .value("N")
      .from_to(0, 999)
      .with_default();
  command.flag("--quick", options->quick, "seconds instead of minutes: fewer shapes and samples");
  command.option("--out", options->out, "write a device file to FILE; -: to stdout, instead of the text")
      .value("FILE");
  add_width(command, options->width);
  command.on_run([options] { return measure(*options); });
}

}  // namespace metaprof
