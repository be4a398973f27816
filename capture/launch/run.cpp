#include "capture/launch/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>

#include "capture/launch/installation.h"
#include "capture/launch/peak.h"
#include "capture/launch/saved_program.h"
#include "capture/launch/temporary_folder.h"
#include "core/error.h"
#include "core/formats/display.h"
#include "meta/allocator/caching_allocator.h"
#include "meta/platform/cudnn/cudnn_planner.h"
#include "profiler/allocator/least_memory.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

// What follows is of the same stretch.
void raise(AllocatorNumber& all, const AllocatorNumber& row) {
  all.current = row.current;
  all.peak = std::max(all.peak, row.peak);
}

// The rows of the recording as the profiler has them. What comes after the last phase is in no row, but in the
// peak.
Phases phases_of(const RecordedDevice& device) {
  Phases phases;
  for (const RunPhase& row : rows_by_phase(device.phases)) {
    for (const auto member : kAllocatorNumbers) raise(phases.peak.*member, row.numbers.*member);
    constexpr std::pair<std::string_view, Phase> kNames[] = {{"setup", Phase::setup},
                                                             {"forward", Phase::forward},
                                                             {"backward", Phase::backward},
                                                             {"optimizer", Phase::optimizer},
                                                             {"zero_grad", Phase::zero_grad}};
    for (const auto& [name, phase] : kNames)
      if (name == row.phase)
        phases.rows.push_back({{phase, static_cast<uint32_t>(row.step), row.micro}, row.numbers});
  }
  return phases;
}

// "8 B requested at most, not 16 B": the first peak that a row of the model has otherwise than the allocator.
// A block that waits for a stream is still requested, but no longer allocated; in the model none waits.
std::string difference_of(const PhaseRow& modelled, const PhaseRow& recorded, bool waits) {
  if (modelled.part != recorded.part) return "another phase";
  constexpr std::pair<std::string_view, AllocatorNumber AllocatorNumbers::*> kCompared[] = {
      {"requested", &AllocatorNumbers::requested_bytes}, {"allocated", &AllocatorNumbers::allocated_bytes}};
  for (const auto& [name, number] : kCompared) {
    if (waits && number == &AllocatorNumbers::requested_bytes) continue;
    const int64_t model = (modelled.numbers.*number).peak, allocator = (recorded.numbers.*number).peak;
    if (model != allocator) return fmt::format("{} B {} at most, not {} B", model, name, allocator);
  }
  return {};
}

// Rows that follow each other and are of one part of the step (forwards without a backward between them) as one: a trace
// does not tell them apart.
std::vector<PhaseRow> by_part(const Phases& phases) {
  std::vector<PhaseRow> rows;
  for (const PhaseRow& row : phases.rows) {
    if (rows.empty() || rows.back().part != row.part) {
      rows.push_back(row);
      continue;
    }
    for (const auto member : kAllocatorNumbers) raise(rows.back().numbers.*member, row.numbers.*member);
  }
  return rows;
}

// Where the allocator's model first gives other statistics than were recorded, of the phases that the trace has.
std::string first_difference(const Phases& replayed, const Phases& recorded, bool waits) {
  const std::vector<PhaseRow> rows = by_part(recorded);
  for (size_t i = 0; i < std::min(replayed.rows.size(), rows.size()); ++i) {
    const std::string difference = difference_of(replayed.rows[i], rows[i], waits);
    const StepPart& part = rows[i].part;
    if (!difference.empty())
      return fmt::format("{} of step {}: {}", to_string(part.phase), part.step + 1, difference);
  }
  return {};
}

// What the allocator was told: by --alloc-conf, else by the program or its environment in a name that its version reads.
// Settings that are not known count as none; what they do shows when the allocator's model is compared.
std::string alloc_conf_of(const LaunchOptions& options, const RecordedProcess& process) {
  if (!options.alloc_conf.empty()) return options.alloc_conf;
  const bool reads_first = framework_of_torch(process.torch).reads_alloc_conf;
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const auto found = process.environment.find(name);
    if (found == process.environment.end() ||
        (name == std::string_view("PYTORCH_ALLOC_CONF") && !reads_first))
      continue;
    try {
      parse_alloc_conf(found->second);
      return found->second;
    } catch (const Error&) {
      return {};
    }
  }
  return {};
}

// Rows that follow the last request that failed. A program that trains on has caught the error.
std::optional<Bytes> reserved_since_recovery(const RecordedDevice& device) {
  const std::vector<RunPhase>& rows = device.phases;
  if (device.out_of_memory.empty()) return std::nullopt;
  std::optional<Bytes> most;
  bool tried_again = false;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i - 1].failures != rows.back().failures || rows[i].failures != rows.back().failures) continue;
    most = std::max(most.value_or(Bytes()), Bytes{rows[i].numbers.reserved_bytes.peak});
    tried_again |= rows[i].phase == "forward" || rows[i].phase == "backward" || rows[i].phase == "optimizer";
  }
  return tried_again ? most : std::nullopt;
}

CachingAllocatorOptions allocator_of(const RankRun& run, const RecordedProcess& process, Bytes memory) {
  return {.conf = parse_alloc_conf(run.alloc_conf),
          .device = {.capacity = static_cast<uint64_t>(memory.count)},
          .order = framework_of_torch(process.torch).free_block_order};
}

// Known where the kept requests are those of the peak, and the allocator's model does with them what the allocator did.
std::optional<Bytes> runs_from(const RankRun& run, const RecordedProcess& process,
                               const RecordedDevice& recorded) {
  const AllocatorNumbers& traced = run.memory.phases.peak;
  const AllocatorNumbers whole = phases_of(recorded).peak;
  if (!run.model_difference.empty() || !recorded.out_of_memory.empty() || recorded.waiting.bytes.count > 0 ||
      traced.reserved_bytes.peak != whole.reserved_bytes.peak ||
      traced.allocated_bytes.peak != whole.allocated_bytes.peak)
    return std::nullopt;
  const Requests requests = requests_of(*recorded.trace, recorded.trace->events, kFirstGpu);
  return least_memory(Bytes{traced.allocated_bytes.peak}, Bytes{traced.reserved_bytes.peak},
                      [&](Bytes memory) {
                        CachingAllocator allocator(allocator_of(run, process, memory));
                        return replay(requests, allocator).out_of_memory.has_value();
                      });
}

RankRun rank_run(const LaunchOptions& options, const RecordedProcess& process, RecordedDevice recorded) {
  RankRun run;
  run.alloc_conf = alloc_conf_of(options, process);
  run.models = process.models;
  run.rank = process.rank().value_or(0);
  run.emulated = process.emulated;
  if (recorded.trace) {
    CachingAllocator allocator(allocator_of(run, process, recorded.memory));
    run.memory = profile_memory(*recorded.trace, kFirstGpu, allocator);
    const bool waits = options.clock != "at-once";  // freed blocks come back later
    run.model_difference = first_difference(run.memory.phases, phases_of(recorded), waits);
    const Bytes at_once{run.memory.phases.peak.reserved_bytes.peak};
    if (waits && recorded.waiting.bytes.count > 0 && run.model_difference.empty() &&
        at_once < Bytes{phases_of(recorded).peak.reserved_bytes.peak})
      run.reserved_at_once = at_once;
    run.expected = options.clock == "expected";
    run.runs_from = runs_from(run, process, recorded);
  }
  const Bytes traced{run.memory.phases.peak.allocated_bytes.peak};
  run.memory.phases = phases_of(recorded);
  if (!process.exception || !process.exception->out_of_memory)
    run.reserved_since_recovery = reserved_since_recovery(recorded);
  run.outside = options.real ? recorded.outside_allocator.value_or(Bytes()) : options.context;
  run.recorded = std::move(recorded);
  take_later_peak(run, traced);
  return run;
}

// Python and what it ran, without what that was given.
std::string name_of(const RecordedProcess& process) {
  const auto& words = process.program;
  return fmt::format(
      "{}", fmt::join(words.begin(), words.begin() + std::min<ptrdiff_t>(2, std::ssize(words)), " "));
}

// "2" of "--nnodes 2" and "--nnodes=2": how many machines a launcher (torchrun) waits for; empty: it names none, or one.
std::string machines_of(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i)
    for (const std::string_view option : {"--nnodes", "--num_machines", "--num-machines"}) {
      if (!words[i].starts_with(option)) continue;
      std::string number = words[i].substr(option.size());
      if (number.empty() && i + 1 < words.size()) number = words[i + 1];
      if (number.starts_with('=')) number.erase(0, 1);
      if (!number.empty() && number != "1" && number != "1:1") return number;
    }
  return {};
}

// Why there is nothing to report.
std::string problem_of(const ProcessEnd& end, const std::vector<RecordedProcess>& processes) {
  for (const RecordedProcess& process : processes)
    if (!process.problem.empty()) return process.problem_text;
  if (processes.empty())
    return "the recorder was not loaded: the program is not Python, or Python was started with -I, -E or -S "
           "or without its environment";
  if (std::none_of(processes.begin(), processes.end(),
                   [](const RecordedProcess& p) { return !p.torch.empty(); }))
    return end.status == 0 ? "the program did not import PyTorch"
                           : "the program ended before it had imported PyTorch";
  if (std::any_of(processes.begin(), processes.end(), [](const RecordedProcess& p) { return p.used_device; }))
    return "the program ended before its first phase was over";
  for (const RecordedProcess& process : processes)
    if (const std::string machines = machines_of(process.program); end.status != 0 && !machines.empty())
      return fmt::format(
          "its launcher waits for {} machines, and there is this one: --world-size N --rank R runs one rank "
          "of the job alone, without a launcher",
          machines);
  return end.status == 0 ? "the program used no CUDA device: did it choose another one?"
                         : "the program ended before it used a CUDA device";
}

std::string place_of(const RecordedException& error) {
  std::string text = error.phase == "setup" || error.phase.empty()
                         ? std::string("setup")
                         : fmt::format("{} of step {}", error.phase, error.step + 1);
  if (!error.line.empty()) text += fmt::format(" ({})", short_line(error.line));
  return text;
}

// What ended the program before it was done; empty where memory ran out, which is said by itself.
std::string ending_of(const LaunchOptions& options, const ProcessEnd& end,
                      const std::vector<RecordedProcess>& processes) {
  const bool started_ranks = options.different_ranks || options.ranks.size() > 1;
  if (end.status == 0 && !end.timed_out && !started_ranks)
    return {};  // a launcher may have started again what failed
  const auto ran_out = [](const RecordedProcess& p) { return p.exception && p.exception->out_of_memory; };
  if (std::ranges::any_of(processes, ran_out)) return {};
  for (const RecordedProcess& process : processes)
    if (process.exception && !process.devices.empty())
      return fmt::format("{} in {}{}", process.exception->type, place_of(*process.exception),
                         started_ranks ? fmt::format(", rank {}", process.rank().value_or(0)) : "");
  for (const RecordedProcess& process : processes)
    for (const auto& [rank, status] : process.failed_ranks)
      return fmt::format("rank {}, with exit status {}", rank, status);
  if (end.status == 0 && !end.timed_out) return {};
  if (end.timed_out) return fmt::format("--timeout after {:g} s", options.timeout);
  if (end.signal != 0) return fmt::format("signal {}", end.signal);
  return fmt::format("itself, with exit status {}", end.status);
}

// On a real device. A rank of a large job runs without NCCL here.
bool uses_nccl(const LaunchOptions& options, const std::vector<RecordedProcess>& processes) {
  return !options.real && (options.world_size > 1 || std::ranges::any_of(processes, [](const auto& process) {
                             return process.emulated.communicators > 0;
                           }));
}

// Where all work is complete at once, no block waits for a second stream that uses it.
void add_lent_memory(const LaunchOptions& options, RunReport& report) {
  if (options.real || options.clock != "at-once") return;
  WaitingBlocks largest;
  for (const RankRun& rank : report.ranks)
    if (rank.recorded.lent.bytes > largest.bytes) largest = rank.recorded.lent;
  if (largest.bytes.count == 0) return;
  report.notes.push_back(
      fmt::format("a second stream uses blocks of up to {}{}. They come back at once here, and on a device "
                  "when that stream is "
                  "done, so that more can be reserved: --device-clock expected or late",
                  human_bytes(largest.bytes.count),
                  largest.line.empty() ? "" : fmt::format(" ({})", short_line(largest.line))));
}

}  // namespace

RunReport report_of(const LaunchOptions& options, const ProcessEnd& end,
                    const std::vector<RecordedProcess>& processes) {
  RunReport report;
  report.program = options.program;
  report.device = options.device.name;
  report.device_title = options.device.title;
  report.device_memory = options.device.memory;
  report.real = options.real;
  if (!options.real) report.clock = options.clock;
  report.asked_cudnn = options.workspaces == "auto";
  report.end = end;
  if (report.asked_cudnn && !report.real && cudnn_helper_folder().empty())
    report.notes.emplace_back(
        "workspaces of convolutions count as 0: the helper metaprof-cudnn-plans is not beside this program");
  for (const RecordedProcess& process : processes) {
    report.ended_after_steps |= process.ended_after_steps;
    for (const std::string& function : process.emulated.missing)
      report.notes.push_back(
          fmt::format("the emulated device has no function {}: its calls failed", function));
    report.notes.insert(report.notes.end(), process.notes.begin(), process.notes.end());
    for (const PossibleFix& fix : process.fixes)
      if (std::ranges::find(report.possible_fixes, fix.name, &PossibleFix::name) ==
          report.possible_fixes.end())
        report.possible_fixes.push_back(fix);
    if (!process.problem.empty())
      report.notes.push_back(fmt::format("process {} ({}) is not in this report: {}", process.pid,
                                         name_of(process), process.problem_text));
    if (process.devices.empty()) continue;
    report.torch = process.torch;
    report.cuda = process.cuda;
    report.cudnn = process.cudnn;
    for (const RecordedDevice& device : process.devices)
      report.ranks.push_back(rank_run(options, process, device));
  }
  add_lent_memory(options, report);
  if (uses_nccl(options, processes))
    report.notes.emplace_back(
        "NCCL's own memory counts as 0: real cards took 0.5 to 2.9 GiB for it (docs/reference/run.md)");
  if (!report.ended_after_steps) report.ended = ending_of(options, end, processes);
  if (report.ranks.empty()) report.problem = problem_of(end, processes);
  if (options.real && !report.ranks.empty()) {
    report.device_title = report.device = report.ranks[0].recorded.title;
    report.device_memory = report.ranks[0].recorded.memory;
  }
  return report;
}

// To import PyTorch 2.11 takes 3.0 GiB of addresses. With fewer, a program ends with the trace of a library that could
// not be loaded, which says nothing of the limit.
void check_address_space() {
  constexpr rlim_t kLeast = rlim_t{4} << 30;
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kLeast)
    return;
  fail("out of memory: `ulimit -v` allows this program {} of addresses: one with PyTorch takes at least {}",
       human_bytes(static_cast<int64_t>(limit.rlim_cur)), human_bytes(static_cast<int64_t>(kLeast)));
}

RunReport run_recorded(const LaunchOptions& options, const std::function<void(const Progress&)>& progress) {
  check_address_space();
  const TemporaryFolder record("metaprof-run");
  ProcessOptions process;
  process.words = options.program;
  process.environment = environment_of(options, record.path());
  process.timeout = options.timeout;
  process.output_to_error = options.own_output;
  process.silent = options.silent;
  if (progress) process.poll = [&] { progress(read_progress(record.path())); };
  const ProcessEnd end = run_process(process);
  const std::vector<RecordedProcess> processes = read_processes(record.path());
  RunReport report = report_of(options, end, processes);
  if (!fs::exists(record.path()))
    report.problem =
        fmt::format("{}, where it was recorded, was deleted while the program ran", record.path().string());
  if ((options.save.empty() && !options.costs) || !report.problem.empty()) return report;
  try {
    report.captured = captured_programs(processes, options, report.ended);
    if (!options.save.empty()) report.saved = save_programs(report.captured, options.save);
  } catch (const Error& error) {
    report.not_captured = error.what();
  }
  return report;
}

Framework framework_of_torch(const std::string& version) {
  return framework_of(version.empty() ? kNewestFramework : parse_framework_version(version));
}

std::string short_line(const std::string& line) {
  std::error_code code;
  const std::string here = fs::current_path(code).string() + "/";
  return line.starts_with(here) ? line.substr(here.size()) : line;
}

}  // namespace metaprof
