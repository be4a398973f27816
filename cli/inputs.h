#pragma once
// What command lines name: models and devices.

#include <string>

#include "meta/platform/profile.h"
#include "meta/program/program.h"

namespace metaprof {

/// True if the file's name says that it is a trace (`*.trace`).
bool is_trace_file(const std::string& path);

/// Reads a `.pt2`, given by its path, or by its name where it lies here or in a folder that the environment
/// variable METAPROF_MODELS lists. Errors: as read_pt2; a model of a kind that cannot be read yet. Warnings
/// go to stderr.
Program load_program(const std::string& model);

/// A built-in device, or one from a file `*.json`. Errors: no such device.
DeviceProfile load_device(const std::string& device);

/// The whole of a text file. Errors: no such file, too large.
std::string read_text_file(const std::string& path);

}  // namespace metaprof
