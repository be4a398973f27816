#pragma once
// Where the files are that a program is run with: the recorder and the emulated device's libraries.

#include <filesystem>
#include <map>
#include <string>

#include "capture/launch/launch_options.h"

namespace metaprof {

/// The folder that goes on PYTHONPATH. METAPROF_RECORDER names another one. Errors: there is none.
std::filesystem::path recorder_folder();

/// The folder with the Python package, for PYTHONPATH, before what is there. METAPROF_PACKAGE names another folder. Errors:
/// there is none.
std::string python_path();

/// What the program's environment gets in addition. `record`: the folder for what is recorded. Errors: the
/// emulated device is not installed; a word of `environment` is no NAME=VALUE.
std::map<std::string, std::string> environment_of(const LaunchOptions& options,
                                                  const std::filesystem::path& record);

/// The device as the emulated libraries read it: "name=h200;title=…".
std::string description_of(const Hardware& device);

}  // namespace metaprof
