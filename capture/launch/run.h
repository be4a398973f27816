#pragma once
// Runs an unmodified program with the recorder attached, on an emulated device or on a real one, and tells
// what it did to memory. Prints nothing.

#include <functional>
#include <string>
#include <vector>

#include "capture/launch/launch_options.h"
#include "capture/launch/launch_report.h"
#include "meta/platform/framework.h"

namespace metaprof {

/// What a version does, as torch says it, "2.11.0+cu130"; the newest of an empty one.
Framework framework_of_torch(const std::string& version);

/// Errors: the program cannot be run, the recorder or the emulated device is not installed, a name in
/// `environment` is malformed.
RunReport run_recorded(const LaunchOptions& options, const std::function<void(const Progress&)>& progress);

/// What a recording says, for programs that have ended. Part of run_recorded.
RunReport report_of(const LaunchOptions& options, const ProcessEnd& end,
                    const std::vector<RecordedProcess>& processes);

/// A line of the program with its file relative to the current folder, where it lies below it: "train.py:14".
std::string short_line(const std::string& line);

}  // namespace metaprof
