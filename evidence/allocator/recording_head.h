#pragma once

#include <filesystem>

#include "evidence/allocator/recording.h"

namespace metaprof {

// Fills in what a recording's .json says: options of the allocator, memory of the device, phases.
void read_recording_head(const std::filesystem::path& json, Recording& recording);

}  // namespace metaprof
