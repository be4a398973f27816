#include "capture/launch/saved_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/formats/display.h"
#include "core/formats/gzip_text.h"
#include "core/formats/output_file.h"
#include "meta/platform/hardware.h"
#include "program/text/text.h"

namespace metaprof {
namespace {

// The requests of a trace by the phases that it has; what lies in none is left out.
std::vector<std::vector<int64_t>> requests_by_phase(const Trace& trace) {
  std::vector<std::vector<int64_t>> phases;
  std::vector<int64_t> number(trace.storages.size());  // of a storage's request, from 1
  int64_t requests = 0;
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase) phases.emplace_back();
    const bool request = event.kind == Event::Kind::alloc;
    if (phases.empty() || (!request && event.kind != Event::Kind::free)) continue;
    if (trace.bytes(event.id).count == 0) continue;
    if (request) number[event.id] = ++requests;
    phases.back().push_back(request ? trace.bytes(event.id).count : number[event.id] - requests - 1);
  }
  return phases;
}

void add_measurement(Capture& capture, const RecordedDevice& device) {
  for (const RunPhase& phase : rows_by_phase(device.phases))
    capture.measured.push_back({phase.phase, phase.step, phase.micro, phase.numbers, {}});
  if (!device.trace) return;
  const auto requests = requests_by_phase(*device.trace);
  for (size_t i = 0; i < std::min(requests.size(), capture.measured.size()); ++i)
    capture.measured[i].requests = requests[i];
  // Steps that were not recorded in detail are in no program.
  capture.measured.resize(std::min(requests.size(), capture.measured.size()));
}

// What the run did after the steps that the file has, or could not do.
std::vector<std::string> left_out(const RecordedDevice& device, const Capture& capture,
                                  const std::string& ended) {
  std::vector<std::string> warnings;
  if (!ended.empty())
    warnings.push_back(fmt::format(
        "the run was ended by {}: what the program would have taken after that is not known", ended));
  if (!device.out_of_memory.empty()) {
    const RecordedOutOfMemory& failed = device.out_of_memory.back();
    warnings.push_back(fmt::format(
        "memory ran out in the run, in {} of step {}: it asked for {} while {} were reserved", failed.phase,
        failed.step + 1, human_bytes(failed.requested.count), human_bytes(failed.reserved.count)));
  }
  const int64_t last = capture.measured.empty() ? 0 : capture.measured.back().step;
  int64_t kept = 0;
  const RunPhase* highest = nullptr;
  for (const RunPhase& row : device.phases) {
    const int64_t reserved = row.numbers.reserved_bytes.peak;
    if (row.step <= last && row.phase != "after")
      kept = std::max(kept, reserved);
    else if (!highest || reserved > highest->numbers.reserved_bytes.peak)
      highest = &row;
  }
  if (highest && highest->numbers.reserved_bytes.peak > kept)
    warnings.push_back(
        fmt::format("the file has the first {} of {} steps (--detail), and the run reserved more later: {} "
                    "in step {}, {} before",
                    last + 1, device.phases.back().step + 1,
                    human_bytes(highest->numbers.reserved_bytes.peak), highest->step + 1, human_bytes(kept)));
  return warnings;
}

// What ended the run before its first step was whole. Only what follows the optimizer's update says that this was over.
std::string unfinished_by(const RecordedDevice& device, const Capture& capture, const std::string& ended) {
  const auto& measured = capture.measured;
  const auto update = std::ranges::find(measured, "optimizer", &Capture::Measured::phase);
  const bool goes_on = update != measured.end() && update + 1 != measured.end();
  if (goes_on || (!measured.empty() && measured.back().step > 0)) return "";
  if (!ended.empty()) return ended;
  if (device.out_of_memory.empty() || device.phases.empty()) return "";
  const RecordedOutOfMemory& failed = device.out_of_memory.back();
  const bool went_on = device.phases.back().phase != failed.phase && device.phases.back().phase != "after";
  return went_on ? "" : fmt::format("out of memory in {} of step {}", failed.phase, failed.step + 1);
}

// Reads whose answers are not known: the saved steps are those that followed these answers.
std::vector<std::string> unknown_reads(const std::vector<DataRead>& reads) {
  std::vector<std::string> warnings;
  for (const DataRead& read : reads) {
    const bool is_unknown = read.source == "unknown";
    if (!is_unknown && read.source != "assumed") continue;
    warnings.push_back(
        fmt::format("{}{} read data of the device {} ({} times): other data may lead to other steps",
                    read.line.empty() ? "" : read.line + ": ", read.op,
                    is_unknown ? "that could not be computed, and got 0" : "that was assumed", read.count));
  }
  return warnings;
}

// A real card's name; of one that is not known its title as a word, which --device has to explain then.
std::string name_of_card(std::string title) {
  for (const Hardware& known : known_hardware())
    if (known.title == title) return known.name;
  std::ranges::replace(title, ' ', '-');
  return title;
}

std::string reason(const std::vector<RecordedProcess>& processes) {
  for (const RecordedProcess& process : processes)
    if (process.is_saving) return ": it was ended while its program was being saved; its steps were over";
  for (const RecordedProcess& process : processes)
    for (const std::string& note : process.notes)
      if (note.find("not saved") != note.npos) return ": " + note;
  return ": no process has used a device";
}

}  // namespace

void write_program(const std::string& file, const Program& program) {
  write_file(file, gzipped(to_text(program)));
}

std::vector<std::pair<int, Program>> captured_programs(const std::vector<RecordedProcess>& processes,
                                                       const LaunchOptions& options,
                                                       const std::string& ended) {
  std::vector<std::pair<int, Program>> programs;
  for (const RecordedProcess& process : processes) {
    if (process.captured.empty() || process.devices.empty()) continue;
    Program program = parse_program(process.captured, "the captured program");
    if (!program.captured) fail("the recorder's program is none of a run");
    Capture& capture = *program.captured;
    capture.device = options.real ? name_of_card(process.devices[0].title) : options.device.name;
    capture.memory = options.real ? process.devices[0].memory.count : options.device.memory.count;
    capture.alloc_conf = options.alloc_conf;
    if (!options.alloc_conf.empty())  // environment_of gave it these names
      for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
        capture.environment.erase(name);
    capture.workspaces = options.workspaces;
    add_measurement(capture, process.devices[0]);
    capture.unfinished = unfinished_by(process.devices[0], capture, ended);
    for (std::string& warning : left_out(process.devices[0], capture, ended))
      program.warnings.push_back(std::move(warning));
    for (std::string& warning : unknown_reads(process.devices[0].reads))
      program.warnings.push_back(std::move(warning));
    program.name = options.save.empty() ? "run" : std::filesystem::path(options.save).stem().string();
    const int number = process.rank().value_or(static_cast<int>(programs.size()));
    programs.emplace_back(number, std::move(program));
  }
  if (programs.empty()) fail("there is no program to save{}", reason(processes));
  return programs;
}

std::vector<std::string> save_programs(const std::vector<std::pair<int, Program>>& programs,
                                       const std::string& file) {
  std::vector<std::string> files;
  for (const auto& [rank, program] : programs) {
    files.push_back(
        programs.size() == 1 ? file : fmt::format("{}.rank{}.mp", file.substr(0, file.size() - 3), rank));
    write_program(files.back(), program);
  }
  return files;
}

}  // namespace metaprof
