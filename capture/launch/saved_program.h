#pragma once
// The programs that a run has captured, as files.

#include <string>
#include <utility>
#include <vector>

#include "capture/launch/launch_options.h"
#include "capture/launch/recording.h"
#include "program/program.h"

namespace metaprof {

/// Rank (or number) and program of each process that has one, with what the process measured of its first device. `ended`: what ended the
/// program before it was done, which every command that reads the file then says; empty: nothing did. Errors: no process has a program.
std::vector<std::pair<int, Program>> captured_programs(const std::vector<RecordedProcess>& processes,
                                                       const LaunchOptions& options,
                                                       const std::string& ended);

/// Writes them to `file` as gzipped text. Of several each has its rank in the name: step.rank1.mp. Returns the names. Errors: a file cannot
/// be written.
std::vector<std::string> save_programs(const std::vector<std::pair<int, Program>>& programs,
                                       const std::string& file);

/// Gzipped text. Errors: the file cannot be written.
void write_program(const std::string& file, const Program& program);

}  // namespace metaprof
