#pragma once
// The programs that a run has captured, as files.

#include <string>
#include <vector>

#include "capture/launch/launch_options.h"
#include "capture/launch/recording.h"
#include "program/program.h"

namespace metaprof {

/// Writes to `options.save` the program of each process that has one, with what the process measured of its first device, as gzipped
/// text. `ended`: what ended the program before it was done, which every command that reads the file then says; empty:
/// nothing did. Of several processes each has its rank in the name, or its number: step.rank1.mp. Returns the names. Errors: no process
/// has a program; a file cannot be written.
std::vector<std::string> save_programs(const std::vector<RecordedProcess>& processes,
                                       const LaunchOptions& options, const std::string& ended);

/// Gzipped text. Errors: the file cannot be written.
void write_program(const std::string& file, const Program& program);

}  // namespace metaprof
