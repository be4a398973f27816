// metaprof run: runs an unmodified program on an emulated device and reports what its steps cost.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string_view>

#include "capture/launch/both_answers.h"
#include "capture/launch/run.h"
#include "capture/launch/saved_program.h"
#include "cli/commands/commands.h"
#include "cli/commands/run_fixes.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "core/error.h"
#include "core/formats/display.h"
#include "core/formats/gzip_text.h"
#include "core/formats/output_file.h"
#include "estimate/compare/check.h"
#include "estimate/prepare/sizes.h"
#include "estimate/run_costs.h"
#include "meta/allocator/alloc_conf.h"
#include "meta/platform/files/device_file.h"
#include "meta/platform/outside_allocator.h"
#include "reports/profile/profile_report.h"
#include "reports/report_forms.h"
#include "reports/run/run_report.h"

namespace metaprof {
namespace {

constexpr const char* kRunDescription =
    "What the steps of an unmodified PyTorch program cost, on an emulated device.\n"
    "\n"
    "  metaprof run -- python train.py --epochs 1\n"
    "  metaprof run --device rtx4090 --steps 3 -- python train.py\n"
    "  metaprof run --memory 24GiB --json run.json -- accelerate launch train.py\n"
    "  metaprof run --gpus 2 -- torchrun --nproc-per-node 2 train.py\n"
    "  metaprof run --world-size 64 --gpus 8 -- python train_fsdp.py              rank 0 of 64\n"
    "  metaprof run --world-size 64 --gpus 8 --rank 0,31,63 -- python train_fsdp.py\n"
    "  metaprof run --world-size 512 --gpus 8 --ranks all-different -- python train_pipeline.py\n"
    "  metaprof run --real -- python train.py          on this machine's GPU\n"
    "\n"
    "The program needs a PyTorch 2.6 to 2.15 built with CUDA. It needs no GPU and no driver.\n"
    "Exit status: the program's own; 2 if it could not be run or recorded; 1 if the program ended well\n"
    "but does not fit, or if --save wrote a program whose peak is not the run's (--tolerance).\n";

constexpr int kDoesNotHold = 1;  // exit status: it does not fit, or what was saved does not repeat the run

struct RunCommandOptions {
  LaunchOptions run;
  bool all = false;    // the text is whole
  bool fixes = false;  // the program is run again with each change that may help
  std::string device = "h200", memory, context, json, tolerance = "1%";
  std::string rank, ranks;         // "0,63", "all-different"
  std::vector<std::string> files;  // of forms(), in its order; empty: not asked for
  TextOptions text;
  std::string color;
};

// The forms of profile's reports, but JSON, of which a run has its own.
std::vector<ReportForm> forms() {
  std::vector<ReportForm> out;
  for (const ReportForm& form : report_forms())
    if (form.name != "json") out.push_back(form);
  return out;
}

// "step 2 · backward · 3.1 GiB reserved", in place of the line before; nothing where stderr is a file.
class RunProgressLine {
 public:
  ~RunProgressLine() { clear(); }
  void show(const Progress& progress) {
    if (!progress.any) return;
    clear();
    const std::string text =
        fmt::format("metaprof: step {}, {}, {:.2f} GiB reserved at most", progress.step, progress.phase,
                    static_cast<double>(progress.peak.count) / (1 << 30));
    std::cerr << text << std::flush;
    shown_ = true;
  }

 private:
  void clear() {
    if (shown_) std::cerr << "\r\x1b[K" << std::flush;
    shown_ = false;
  }
  bool shown_ = false;
};

Hardware device_of(const RunCommandOptions& options) {
  const Hardware* known = find_hardware(options.device);
  Hardware device = known ? *known : read_device_file(options.device).hardware;
  if (device.type != DeviceType::cuda) fail("--device {}: a program is run on a CUDA device", options.device);
  if (!options.memory.empty()) device.memory = parse_size(options.memory);
  return device;
}

std::string log_beside(const std::string& json) {
  return std::filesystem::path(json).replace_extension(".log.gz").string();
}

// A long run is not to be lost because its report cannot be written.
void check_file(const std::string& option, const std::string& file) {
  if (file.empty() || file == "-") return;
  try {
    check_can_be_written(file);
  } catch (const Error& error) {
    fail("{} {}", option, error.what());
  }
}

void check_files(const RunCommandOptions& options) {
  check_file("--json", options.json);
  if (options.run.events) check_file("--events", log_beside(options.json));
  check_file("--save", options.run.save);
  const std::vector<ReportForm> all = forms();
  for (size_t i = 0; i < all.size(); ++i) check_file(option_of(all[i]), options.files[i]);
}

void check(const Command& command, const RunCommandOptions& options) {
  const LaunchOptions& run = options.run;
  if (run.program.empty()) fail("no program given: metaprof run [options] -- python train.py");
  if (run.real)
    for (const char* option : {"--device", "--memory", "--context", "--gpus", "--device-clock"})
      if (command.was_given(option))
        fail("{} has no effect with --real, which uses the machine's own device", option);
  if (!run.save.empty() && !run.save.ends_with(".mp"))
    fail("--save {}: the file's name must end in .mp", run.save);
  if (command.was_given("--tolerance") && run.save.empty()) fail("--tolerance needs --save");
  if (run.events && (options.json.empty() || options.json == "-"))
    fail("--events needs --json FILE.json: the history is written beside it, as FILE.log.gz");
  parse_share(options.tolerance, "--tolerance");
  parse_alloc_conf(run.alloc_conf);
  check_files(options);
}

// What the end of the program calls for besides its exit status.
void tell_end(const RunReport& report, double timeout) {
  if (report.end.timed_out)
    message(fmt::format("the program was ended after {} s (--timeout)", timeout));
  else if (report.end.signal != 0)
    message(fmt::format("the program was ended by signal {} ({})", report.end.signal,
                        strsignal(report.end.signal)));
  if (report.end.ended_descendants > 0)
    message(fmt::format("{} processes that the program had left running were ended",
                        report.end.ended_descendants));
}

// Of the device with the highest peak, from the steps of which every request was kept.
void write_forms(const RunReport& report, const RunCosts& costs, const RunCommandOptions& options) {
  const std::vector<ReportForm> all = forms();
  if (std::all_of(options.files.begin(), options.files.end(), [](const auto& file) { return file.empty(); }))
    return;
  const RankRun& rank = largest_rank(report);
  if (!rank.recorded.trace) fail("{}: no request of memory was kept", option_of(all[0]));
  Estimate estimate;
  estimate.platform.hardware = options.run.device;
  estimate.platform.framework = framework_of_torch(report.torch);
  estimate.options.alloc_conf = rank.alloc_conf;
  estimate.trace = *rank.recorded.trace;
  estimate.report = profile_of(report, rank, costs);
  ReportInputs inputs(estimate, options.text);
  for (size_t i = 0; i < all.size(); ++i)
    if (!options.files[i].empty()) write_result(options.files[i], all[i].make(inputs));
}

// What the device's context and PyTorch's kernels take: as was asked for, else as reported for such cards.
Bytes context_of(const RunCommandOptions& options) {
  if (options.context == "none") return {};
  Platform platform;
  platform.hardware = options.run.device;
  const Bytes context =
      options.context.empty() ? outside_allocator(platform).most : parse_size(options.context);
  if (context >= options.run.device.memory)
    fail("the device has {}, and its context takes {}: --context none leaves it out",
         human_bytes(options.run.device.memory.count), human_bytes(context.count));
  return context;
}

// Whoever asks a saved program for something else should know what the engine does not repeat of the run itself. False: a peak
// is further off than `tolerance`, a share.
bool check_saved(const std::vector<std::string>& files, double tolerance) {
  bool within = true;
  for (const std::string& file : files) {
    Model saved = read_model(file);
    const std::optional<NotRepeated> difference = not_repeated(saved);
    if (!difference) continue;
    saved.program.warnings.push_back(difference->text);
    write_program(file, saved.program);
    print_note(fmt::format("warning: {}: {}", file, difference->text));
    if (difference->error <= tolerance) continue;
    within = false;
    message(
        fmt::format("{}: its peak is not the run's: do not ask it for other options (--tolerance)", file));
  }
  return within;
}

// The allocator's history stands beside the report, where `metaprof check` looks for it.
void write_events(const RunReport& report, const RunCommandOptions& options) {
  if (!options.run.events) return;
  const std::string& log = largest_rank(report).recorded.log;
  if (log.empty()) fail("--events: no request of memory was kept");
  write_file(log_beside(options.json), gzipped(log));
}

void write_json(const RunReport& report, const RunCosts& costs, const RunCommandOptions& options) {
  if (!options.json.empty()) write_result(options.json, run_json(report, costs));
}

// A report that cannot be written takes none of the others with it: the run may have been a long one.
class Failures {
 public:
  template <typename Action>
  void attempt(const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      add(error.what());
    }
  }
  void add(const std::string& text) {
    message(text);
    any_ = true;
  }
  bool any() const { return any_; }

 private:
  bool any_ = false;
};

bool all_fit(const RunReport& report) {
  return std::ranges::all_of(report.ranks,
                             [&](const RankRun& rank) { return verdict_of(report, rank).fits; });
}

// "0,31,63". Errors: what is no list of ranks of this job.
std::vector<int> ranks_of(const std::string& text, int world_size) {
  std::vector<int> ranks;
  for (size_t begin = 0, end = 0; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    int rank = -1;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), rank);
    if (error != std::errc() || rest != word.data() + word.size())
      fail("--rank {}: expected a rank, or several as 0,31,63", text);
    if (rank < 0 || rank >= world_size) fail("--rank {}: there are ranks 0 to {}", word, world_size - 1);
    if (std::ranges::find(ranks, rank) != ranks.end()) fail("--rank {}: {} is named twice", text, rank);
    ranks.push_back(rank);
  }
  return ranks;
}

void choose_ranks(const Command& command, RunCommandOptions& options) {
  LaunchOptions& run = options.run;
  for (const char* option : {"--rank", "--ranks"})
    if (command.was_given(option) && run.world_size == 0) fail("{} needs --world-size", option);
  if (command.was_given("--rank") && command.was_given("--ranks"))
    fail("--rank names the ranks that --ranks finds: give one of them");
  if (command.was_given("--rank")) run.ranks = ranks_of(options.rank, run.world_size);
  run.different_ranks = !options.ranks.empty();
}

// Once, or with either answer where the program read what nobody knows.
RunReport run_program(RunCommandOptions& options, const std::function<void(const Progress&)>& progress) {
  LaunchOptions& run = options.run;
  if (std::erase(run.assumptions, "both") == 0) return run_recorded(run, progress);
  if (std::ranges::find(run.assumptions, "all") != run.assumptions.end())
    fail("--assume both runs the program with `all`, too: give one of them");
  if (!run.save.empty() || options.fixes)
    fail("--assume both runs the program twice: {} takes one run, with --assume all or without it",
         run.save.empty() ? "--fixes" : "--save");
  return run_with_both_answers(run, progress, [] { message("the program runs again with: --assume all"); });
}

int run(const Command& command, RunCommandOptions& options) {
  check(command, options);
  choose_ranks(command, options);
  if (!options.run.real) {
    options.run.device = device_of(options);
    options.run.context = context_of(options);
  }
  options.run.own_output = options.json == "-";
  RunProgressLine line;
  std::function<void(const Progress&)> progress;
  if (isatty(STDERR_FILENO) != 0) progress = [&](const Progress& now) { line.show(now); };
  RunReport report = run_program(options, progress);
  std::cerr << std::flush;
  tell_end(report, options.run.timeout);
  if (options.fixes && report.problem.empty()) try_all_fixes(options.run, options.context, report, all_fit);
  Failures failures;
  if (!report.problem.empty()) {
    failures.attempt([&] { write_json(report, {}, options); });
    message(fmt::format("{}: nothing was recorded", report.problem));
    return report.end.status != 0 && !report.end.timed_out ? report.end.status : kBadInput;
  }
  if (!report.not_captured.empty())
    failures.add(fmt::format("{}: {}", options.run.save.empty() ? "--costs" : "--save", report.not_captured));
  const RunCosts costs = costs_of_run(report.captured);
  failures.attempt([&] { write_json(report, costs, options); });
  failures.attempt([&] { write_events(report, options); });
  bool repeated = true;
  failures.attempt(
      [&] { repeated = check_saved(report.saved, parse_share(options.tolerance, "--tolerance")); });
  failures.attempt([&] { write_forms(report, costs, options); });
  options.text.colour = colour_on_stdout(options.color);
  options.text.brief = !options.all;
  options.text.brief_modules =
      !options.all && std::ranges::none_of(std::array{"--depth", "--sort", "--top"},
                                           [&](const char* option) { return command.was_given(option); });
  if (options.json != "-") print_text("\n" + run_text(report, options.text, costs), options.text.colour);
  if (report.end.timed_out || failures.any()) return kBadInput;
  if (report.end.status != 0) return report.end.status;
  return all_fit(report) && repeated ? 0 : kDoesNotHold;
}

void add_device_options(Command& command, RunCommandOptions& options) {
  LaunchOptions& run = options.run;
  command.option("--device", options.device, "a device by name, or a file that describes one")
      .value("NAME|FILE.json")
      .with_default();
  command.option("--memory", options.memory, "memory of the device, as 24GiB [its own]").value("SIZE");
  command
      .option(
          "--context", options.context,
          "what the device's context and kernels take of its memory, as 500MiB; none: nothing [as reported "
          "for such cards]")
      .value("SIZE|none");
  command.option("--gpus", run.gpus, "number of devices in the machine")
      .value("N")
      .from_to(1, 16)
      .with_default();
}

void add_rank_options(Command& command, RunCommandOptions& options) {
  command.option("--world-size", options.run.world_size, "run one rank of an N-rank job, or some of them")
      .value("N")
      .from_to(1, 1 << 20);
  command.option("--rank", options.rank, "the rank to run, or several, which run beside each other [0]")
      .value("R|R,R…");
  command
      .option(
          "--ranks", options.ranks,
          "run the ranks that may differ: the first one and those that it sends to or receives from, and so "
          "on (stages of a pipeline); without such, the last one")
      .value("all-different")
      .one_of({"all-different"});
}

// How the program is run, and what it is told.
void add_program_options(Command& command, RunCommandOptions& options) {
  LaunchOptions& run = options.run;
  command.option("--steps", run.steps, "stop the program after N optimizer steps").value("N").above(0);
  command.option("--detail", run.detail_steps, "steps whose every memory request is kept")
      .value("N")
      .from_to(1, 1000)
      .with_default();
  command.option("--timeout", run.timeout, "stop the program after this time").value("SECONDS").above(0);
  command.option("--alloc-conf", run.alloc_conf, "allocator settings, as in PYTORCH_ALLOC_CONF")
      .value("TEXT");
  command
      .option("--workspaces", run.workspaces,
              "workspaces of cuDNN's plans: auto asks the program's cuDNN, none counts 0 bytes")
      .value("auto|none")
      .one_of({"auto", "none"})
      .with_default();
  command
      .option("--device-clock", run.clock,
              "when the emulated device's work is complete: at-once; expected: after its time; late: when "
              "somebody waits "
              "for it")
      .value("at-once|expected|late")
      .one_of({"at-once", "expected", "late"})
      .with_default();
  command
      .option("--assume", run.assumptions,
              "data-dependent sizes: even (experts are chosen equally often), all (unknown masks have all "
              "elements set), both (run with none and with all of them), or what a line reads")
      .value("even|all|both|FILE:LINE=N[/M]")
      .one_value();
  command.option("--env", run.environment, "an environment variable for the program")
      .value("NAME=VALUE")
      .one_value();
  command.flag("--real", run.real, "use this machine's GPU instead of an emulated one");
}

void add_capture_options(Command& command, RunCommandOptions& options) {
  LaunchOptions& run = options.run;
  command.option("--save", run.save, "save the program that was run, for `metaprof profile FILE.mp`")
      .value("FILE.mp");
  command
      .option(
          "--tolerance", options.tolerance,
          "the largest error of the saved program's peaks, as 1% or 0.01; beyond it, the exit status is 1")
      .value("SHARE")
      .with_default();
  command.flag(
      "--costs", run.costs,
      "FLOPs and expected time of the first step, too (as with --save): the program is captured for them");
  command.flag("--fixes", options.fixes,
               "run the program again with each change that may take less memory, and show what it takes");
}

void add_report_options(Command& command, RunCommandOptions& options) {
  command.option("--json", options.json, "write JSON to FILE; -: to stdout, instead of the text")
      .value("FILE");
  command.flag(
      "--events", options.run.events,
      "write the allocator's history of the steps that --detail keeps, beside the JSON (FILE.log.gz)");
  const std::vector<ReportForm> all = forms();
  options.files.resize(all.size());
  for (size_t i = 0; i < all.size(); ++i)
    command.option(option_of(all[i]), options.files[i], std::string(all[i].what)).value("FILE");
  command.option("--depth", options.text.depth, "levels of the tree of modules to show; -1: all")
      .value("N")
      .with_default();
  add_color(command, options.color);
  command.option("--sort", options.text.sort, "sort modules by this column").value("COLUMN");
  command.option("--top", options.text.top, "only the N largest modules of all levels").value("N");
  command.flag("--all", options.all, "all rows of all tables: without it, the text fits a screen");
}

}  // namespace

void add_run_command(CommandLine& line) {
  Command command = line.add("run", kRunDescription);
  auto options = std::make_shared<RunCommandOptions>();
  add_device_options(command, *options);
  add_rank_options(command, *options);
  add_program_options(command, *options);
  add_capture_options(command, *options);
  add_report_options(command, *options);
  command.option("program", options->run.program, "the program and its arguments, after --")
      .value("-- PROGRAM ARGS…");
  command.positionals_at_end();
  command.on_run([command, options] { return run(command, *options); });
}

}  // namespace metaprof
